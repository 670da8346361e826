//! `verify` of a lake: many files, one set, one result.

use std::fs;

use serde_json::{Value, json};

use crate::fake::{Batch, FakeService};
use crate::harness::{Server, export, trayscan};
use crate::verify::{Folder, assert_equal, report, verify, verify_with};

/// Exports a lake and returns its folder, template and manifest.
fn make_lake(server: &Server, folder: &Folder) -> [String; 3] {
    fs::create_dir(folder.at("lake")).unwrap();
    let template = folder.at("lake/year={year}/month={month}/batches.parquet");
    let manifest = folder.at("lake/_manifest.json");
    export(server, &["-o", &template, "--manifest", &manifest]).expect(0);
    [folder.at("lake"), template, manifest]
}

#[cfg(unix)]
#[test]
fn links_to_folders_are_followed() {
    use std::os::unix::fs::symlink;
    let server = Server::start(&[]);
    let folder = Folder::new();
    let [lake, template, _] = make_lake(&server, &folder);
    // A part of it may be on another disk.
    fs::rename(folder.at("lake/year=2025"), folder.at("elsewhere")).unwrap();
    symlink(folder.at("elsewhere"), folder.at("lake/year=2025")).unwrap();
    symlink(&lake, folder.at("lake/year=2025/circle")).unwrap();
    assert_equal(&verify(&[&lake]), "links");
    // Engines would read the same folder twice.
    symlink(folder.at("lake/year=2024"), folder.at("lake/latest")).unwrap();
    let ended = verify(&[&lake]).expect(7);
    for name in ["year=2024", "latest"] {
        let name = format!("{lake}/{name}`");
        assert!(ended.stderr.contains(&name), "{name}: {ended:?}");
    }
    assert!(ended.stderr.contains("read twice"), "{ended:?}");
    // Those that go by the template do not read it.
    assert_equal(&verify(&[&template]), "a second name outside the template");
    fs::remove_file(folder.at("lake/latest")).unwrap();
    // Engines would read these batches, too.
    folder.export(&server, "more.parquet", &["--limit", "1"]);
    fs::create_dir(folder.at("forged")).unwrap();
    fs::rename(folder.at("more.parquet"), folder.at("forged/x.parquet")).unwrap();
    symlink(folder.at("forged"), folder.at("lake/year=2019")).unwrap();
    let ended = verify(&[&lake]).expect(7);
    assert!(ended.stderr.contains("more than once"), "{ended:?}");
}

#[test]
fn folders_are_named_like_their_batches() {
    let server = Server::start(&["--batches", "400"]);
    let folder = Folder::new();
    let template = folder.at("lake/crop_type={crop_type}/year={year}/b.csv");
    export(&server, &["-o", &template]).expect(0);
    let (lake, whole) = (folder.at("lake"), folder.export(&server, "a.ndjson", &[]));
    assert_equal(&verify(&[&lake, "--against", &whole]), "as exported");
    let [tomato, basil, other] =
        ["crop_type=Tomato", "crop_type=Basil", "x"].map(|name| folder.at(&format!("lake/{name}")));
    for (from, to) in [(&tomato, &other), (&basil, &tomato), (&other, &basil)] {
        fs::rename(from, to).unwrap();
    }
    let ended = verify(&[&lake, "--against", &whole]).expect(7);
    let why = "does not belong in the folder `crop_type=";
    assert!(ended.stderr.contains(why), "{ended:?}");
    // Folders around the lake say nothing about it, however its path is written.
    fs::create_dir(folder.at("crop_type=Leek")).unwrap();
    let inside = folder.at("crop_type=Leek/lake");
    fs::create_dir(&inside).unwrap();
    fs::copy(&whole, format!("{inside}/a.ndjson")).unwrap();
    for path in ["crop_type=Leek/lake", "./crop_type=Leek/lake"] {
        let mut verify = trayscan(&["verify", path]);
        verify.current_dir(folder.at("")).output().expect(0);
    }
    // Other layouts, of our own and of others, contradict nothing.
    for (number, layout) in [
        "month={year}-{month}/b.csv",
        "day={year}-{month}-{day}/year={year}{month}/b.csv",
        "crop_type={crop_type}-x/b.csv",
    ]
    .iter()
    .enumerate()
    {
        let other = folder.at(&format!("other{number}"));
        export(&server, &["-o", &format!("{other}/{layout}"), "--manifest"]).expect(0);
        assert_equal(&verify(&[&other]), layout);
    }
    // A folder that is not named like a placeholder may have any name.
    fs::rename(&basil, &other).unwrap();
    fs::rename(&tomato, folder.at("lake/y=1")).unwrap();
    assert_equal(&verify(&[&lake, "--against", &whole]), "other names");
}

#[cfg(unix)]
#[test]
fn each_file_has_identifiers_and_can_be_read() {
    use std::os::unix::fs::symlink;
    let folder = Folder::new();
    let lake = folder.at("lake");
    fs::create_dir(&lake).unwrap();
    fs::write(format!("{lake}/a.csv"), "batch_id,crop_type\na,Leek\n").unwrap();
    verify(&[&lake]).expect(0);
    fs::write(format!("{lake}/b.ndjson"), "{\"crop_type\":\"Leek\"}\n").unwrap();
    let ended = verify(&[&lake]).expect(7);
    assert!(ended.stderr.contains("`batch_id` is missing"), "{ended:?}");
    fs::remove_file(format!("{lake}/b.ndjson")).unwrap();
    symlink("nowhere", format!("{lake}/note.txt")).unwrap();
    verify(&[&lake]).expect(0);
    symlink("nowhere", format!("{lake}/c.csv")).unwrap();
    let ended = verify(&[&lake]).expect(2);
    assert!(ended.stderr.contains("c.csv"), "{ended:?}");
}

#[test]
fn files_of_an_earlier_export_that_the_manifest_lacks_are_told() {
    let server = Server::start(&[]);
    let folder = Folder::new();
    let [_, template, manifest] = make_lake(&server, &folder);
    let ask = |args: &[&str]| export(&server, args).expect(0).stderr;
    let words = "in the lake but not in its manifest";
    let again = ["-o", &template, "--manifest", &manifest, "--start", "2025"];
    let told = ask(&again);
    assert!(told.contains(words), "{told}");
    let whole = ask(&again[..4]);
    assert!(!whole.contains(words), "{whole}");
    // Without a manifest, nothing says which files belong together.
    let plain = ask(&["-o", &template, "--start", "2025"]);
    assert!(!plain.contains(words), "{plain}");
}

#[test]
fn files_that_the_manifest_lacks_are_to_be_removed() {
    let server = Server::start(&[]);
    let folder = Folder::new();
    let [lake, template, manifest] = make_lake(&server, &folder);
    export(
        &server,
        &["-o", &template, "--manifest", &manifest, "--start", "2025"],
    )
    .expect(0);
    let ended = verify(&[&lake]).expect(7);
    let hint = "remove the files that are not in the manifest";
    assert!(ended.stderr.contains(hint), "{ended:?}");
}

#[test]
fn a_manifest_in_the_folder_of_a_lake_is_not_one_of_its_files() {
    let server = Server::start(&["--batches", "30"]);
    let folder = Folder::new();
    fs::create_dir(folder.at("lake")).unwrap();
    let template = folder.at("lake/{year}/batches.ndjson.zst");
    let manifest = folder.at("lake/man.json");
    export(&server, &["-o", &template, "--manifest", &manifest]).expect(0);
    let lake = folder.at("lake");
    assert_equal(&verify(&[&lake, "--manifest", &manifest]), "in the folder");
    verify(&[&lake]).expect(7);
}

#[test]
fn dates_replace_the_manifest_of_a_lake() {
    let server = Server::start(&[]);
    let folder = Folder::new();
    let [lake, ..] = make_lake(&server, &folder);
    for dates in [
        &["--start", "2025", "--end", "2025"][..],
        &["--period", "2025"],
    ] {
        let args = [&[&*lake, "-f", "json"], dates].concat();
        let ended = verify_with(&server, &args).expect(7);
        let report: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!(report["manifest"], Value::Null, "{dates:?}");
        let in_2025 = report["against"]["batches"].as_u64().unwrap();
        assert!((1..250).contains(&in_2025), "{report}");
        // Without a source there is nothing to limit.
        let ended = verify(&[&[&*lake], dates].concat()).expect(2);
        let expected = format!("`{}` needs `--service` or `--archive`", dates[0]);
        assert!(ended.stderr.contains(&expected), "{ended:?}");
    }
}

#[test]
fn the_figures_of_each_file_in_the_manifest_are_compared() {
    let server = Server::start(&[]);
    let folder = Folder::new();
    let [lake, _, manifest] = make_lake(&server, &folder);
    let sound: Value = serde_json::from_slice(&fs::read(&manifest).unwrap()).unwrap();
    let count = |number: usize| sound["files"][number]["batches"].as_u64().unwrap();
    let zeros = json!("0".repeat(64));
    for edits in [
        &[(0, "set_digest", zeros.clone())][..],
        &[(1, "unknown_fields_digest", zeros)],
        &[
            (0, "batches", json!(count(0) + 1)),
            (1, "batches", json!(count(1) - 1)),
        ],
    ] {
        let mut edited = sound.clone();
        for (number, key, value) in edits {
            edited["files"][number][key] = value.clone();
        }
        fs::write(&manifest, edited.to_string()).unwrap();
        let ended = verify(&[&lake]).expect(7);
        let path = sound["files"][edits[0].0]["path"].as_str().unwrap();
        let words = format!("the manifest has other batches for `{path}` than the file");
        assert!(ended.stderr.contains(&words), "{ended:?}");
    }
    fs::write(&manifest, sound.to_string()).unwrap();
    assert_equal(&verify(&[&lake]), "as it was");
}

#[test]
fn a_manifest_anywhere_says_whether_a_lake_is_empty() {
    let folder = Folder::new();
    let [empty, full] = [&[][..], &[Batch::new("a")]].map(FakeService::with);
    let (lake, template) = (folder.at("lake"), folder.at("lake/{year}/b.csv"));
    for manifest in ["m.json", "lake/_m.json", "lake/_manifest.json"].map(|name| folder.at(name)) {
        let args = ["-o", &*template, "--manifest", &manifest];
        export(&empty, &args).expect(0);
        // Without batches, the export created no folder.
        let judged = verify(&[&template, "--manifest", &manifest]);
        assert_equal(&judged, &manifest);
        export(&full, &args).expect(0);
        fs::remove_dir_all(folder.at("lake/2026")).unwrap();
        for place in [&lake, &template] {
            let ended = verify(&[place, "--manifest", &manifest]).expect(7);
            let words = "missing: 1 file in the manifest only";
            assert!(ended.stdout.contains(words), "{ended:?}");
        }
        export(&empty, &args).expect(0);
        for place in [&lake, &template] {
            assert_equal(&verify(&[place, "--manifest", &manifest]), place);
        }
        fs::remove_dir_all(&lake).unwrap();
    }
    // Without a manifest, a lake without files is a mistake.
    let ended = verify(&[&template]).expect(2);
    assert!(ended.stderr.contains("matches the template"), "{ended:?}");
    fs::create_dir(&lake).unwrap();
    let ended = verify(&[&lake]).expect(2);
    assert!(ended.stderr.contains("there is no export"), "{ended:?}");
}

#[test]
fn a_changed_file_of_a_lake_is_reported() {
    let server = Server::start(&[]);
    let folder = Folder::new();
    let [lake, _, manifest] = make_lake(&server, &folder);
    let files: Vec<String> = folder
        .0
        .path()
        .join("lake")
        .read_dir()
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().into_string().ok())
        .filter(|name| name.starts_with("year="))
        .flat_map(|year| {
            let year = folder.0.path().join("lake").join(year);
            year.read_dir()
                .unwrap()
                .map(|month| {
                    month
                        .unwrap()
                        .path()
                        .join("batches.parquet")
                        .to_str()
                        .unwrap()
                        .to_owned()
                })
                .collect::<Vec<_>>()
        })
        .collect();
    let first = &files[0];
    let bytes = fs::read(first).unwrap();
    // A file replaced by another month, one file more, one file fewer.
    fs::copy(&files[1], first).unwrap();
    let judged = report(&[&lake]);
    assert_eq!(judged["equal"], false);
    assert_eq!(
        judged["manifest"]["files"]["altered"],
        json!({"count": 1, "ids": [first]})
    );
    fs::remove_file(first).unwrap();
    let ended = verify(&[&lake]).expect(7);
    assert!(
        ended
            .stdout
            .contains("missing: 1 file in the manifest only"),
        "{ended:?}"
    );
    assert!(
        ended
            .stderr
            .contains("its files are not those in the manifest"),
        "{ended:?}"
    );
    fs::write(first, &bytes).unwrap();
    let more = folder.at("lake/year=1999/batches.parquet");
    fs::create_dir(folder.at("lake/year=1999")).unwrap();
    fs::write(&more, &bytes).unwrap();
    let ended = verify(&[&lake]).expect(7);
    assert!(
        ended
            .stdout
            .contains("unlisted: 1 file not in the manifest"),
        "{ended:?}"
    );
    // Without a manifest, a batch in two files is a duplicate.
    fs::remove_file(&manifest).unwrap();
    let ended = verify(&[&lake]).expect(7);
    assert!(ended.stderr.contains("more than once"), "{ended:?}");
    // The error names the damaged file.
    fs::write(&more, b"PAR1 and nothing else PAR1").unwrap();
    let ended = verify(&[&lake]).expect(7);
    assert!(
        ended.stderr.contains("year=1999/batches.parquet"),
        "{ended:?}"
    );
}

mod thorough {
    use super::*;

    #[test]
    #[ignore = "slow"]
    fn a_lake_is_verified_as_one_set() {
        let server = Server::start(&[]);
        let folder = Folder::new();
        let [lake, template, manifest] = make_lake(&server, &folder);
        let whole = folder.export(&server, "whole.ndjson", &[]);
        for place in [&lake, &template] {
            let ended = verify(&[place]);
            assert_equal(&ended, place);
            assert!(
                ended
                    .stdout
                    .contains(&format!("equals the manifest `{manifest}`: 250 batches")),
                "{ended:?}"
            );
            assert_equal(&verify(&[place, "--manifest", &manifest]), place);
            assert_equal(&verify(&[place, "--against", &whole]), place);
            assert_equal(&verify(&[&whole, "--against", place]), place);
            assert_equal(&verify_with(&server, &[place]), place);
        }
        // A lake can be moved as a whole.
        fs::rename(&lake, folder.at("moved")).unwrap();
        assert_equal(&verify(&[&folder.at("moved")]), "moved");
        fs::rename(folder.at("moved"), &lake).unwrap();

        // It can be seen from any folder, also if the manifest is elsewhere.
        let elsewhere = folder.at("receipt.json");
        fs::copy(&manifest, &elsewhere).unwrap();
        for (from, place, manifest) in [
            ("lake", ".", "../receipt.json"),
            (".", "lake", "receipt.json"),
            (
                ".",
                "lake/year={year}/month={month}/batches.parquet",
                "receipt.json",
            ),
            ("lake/year=2025", "..", "../../receipt.json"),
        ] {
            let mut run = trayscan(&["verify", place, "--manifest", manifest]);
            run.current_dir(folder.at(from));
            assert_equal(&run.output(), place);
        }

        // Names that engines ignore are ignored here too.
        fs::create_dir(folder.at("lake/_temporary")).unwrap();
        for name in [
            "lake/_SUCCESS",
            "lake/.hidden.csv",
            "lake/_temporary/x.parquet",
        ] {
            folder.write(name, "x");
        }
        assert_equal(&verify(&[&lake]), "hidden names");
    }
}
