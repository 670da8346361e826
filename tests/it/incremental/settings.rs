//! The settings in the manifest of a lake, and usage errors.

use std::fs;
use std::path::Path;

use super::{MONTHS, Scene, files, manifest};
use crate::archives::ArchiveFile;
use crate::harness::trayscan;

#[test]
fn other_settings_than_in_the_manifest_rewrite_all_files() {
    let scene = Scene::new();
    scene.run(MONTHS, &[]);
    for (args, reason) in [
        (&["--fields", "-comment"][..], "other fields"),
        (&["--numbers", "--fields", "-comment"], "another format"),
        (&["--numbers"], "other fields"),
        (&[], "another format"),
        (&["--start", "2026-02"], "another range or other filters"),
        (
            &["--where", "crop_type=Leek"],
            "another range or other filters",
        ),
        (&["--lenient"], "another range or other filters"),
        (&["--lenient", "--sort", "batch_name"], "another order"),
    ] {
        let ended = scene.run(MONTHS, args);
        assert!(
            ended.stderr.contains("rewriting all files") && ended.stderr.contains(reason),
            "{args:?}: {ended:?}"
        );
        scene.assert_equals_full_export(MONTHS, args, &format!("{args:?}"));
        let is_narrower = args.contains(&"--start");
        let words = "of the earlier export that this one has no batches for";
        assert_eq!(
            ended.stderr.contains(words),
            is_narrower,
            "{args:?}: {ended:?}"
        );
    }
    // The meaning of "300d" changes all the time.
    let recent = ["--where", "batch_creation_date>=300d"];
    scene.run(MONTHS, &recent);
    let path = scene.lake().join("_manifest.json");
    let mut altered = manifest(&scene.lake());
    let started = altered["started"]
        .as_str()
        .unwrap()
        .replacen("202", "201", 1);
    altered["started"] = started.into();
    fs::write(&path, altered.to_string()).unwrap();
    let ended = scene.run(MONTHS, &recent);
    assert!(ended.stderr.contains("other filters"), "{ended:?}");
    let other = "month={month}/{year}.ndjson";
    let fixed = ["--where", "batch_creation_date>=2026-01-01"];
    scene.run(MONTHS, &fixed);
    let ended = scene.run(other, &fixed);
    assert!(ended.stderr.contains("other file names"), "{ended:?}");
    assert!(ended.stderr.contains("are still there"), "{ended:?}");
    // A new archive, and a modified manifest.
    fs::remove_dir_all(scene.lake()).unwrap();
    scene.run(MONTHS, &[]);
    let again = Scene {
        shelf: ArchiveFile::new(),
        ..scene
    };
    again.nursery.state().items.remove("b11");
    again.sync();
    again
        .shelf
        .open()
        .execute("UPDATE batches SET first_seen = 'x'", [])
        .unwrap();
    let ended = again.run(MONTHS, &[]);
    assert!(ended.stderr.contains("another archive"), "{ended:?}");
    again.assert_equals_full_export(MONTHS, &[], "another archive");
    let path = again.lake().join("_manifest.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(
        &path,
        text.replacen("\"batches\": 11,", "\"batches\": 12,", 2),
    )
    .unwrap();
    let ended = again.run(MONTHS, &[]);
    assert!(ended.stderr.contains("was modified"), "{ended:?}");
    again.assert_equals_full_export(MONTHS, &[], "an altered manifest");
    // Rows deleted by other programs are not in the history of the archive.
    again
        .shelf
        .open()
        .execute("DELETE FROM batches WHERE batch_id = 'b22'", [])
        .unwrap();
    let ended = again.run(MONTHS, &[]);
    assert!(
        ended.stderr.contains("does not match its own history"),
        "{ended:?}"
    );
    again.assert_equals_full_export(MONTHS, &[], "an altered archive");
}

#[test]
fn the_manual_page_names_every_key_of_a_lake() {
    let scene = Scene::new();
    scene.nursery.state().edit("b11", "extra", "1");
    scene.sync();
    scene.run("{crop_type}.ndjson", &[]);
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("man/trayscan-manifest.5");
    let page = fs::read_to_string(page).unwrap();
    let lake = &manifest(&scene.lake())["lake"];
    let mut keys = vec!["lake"];
    for part in [lake, &lake["archive"], &lake["digest"]] {
        keys.extend(part.as_object().unwrap().keys().map(String::as_str));
    }
    assert_eq!(keys.len(), 13);
    for key in keys {
        assert!(page.contains(&format!("\\fB{key}\\fR")), "{key}");
    }
}

#[test]
fn usage_errors_are_reported_before_anything_is_written() {
    let scene = Scene::new();
    let archive = scene.shelf.path.to_str().unwrap();
    let at = |name: &str| scene.folder.path().join(name).to_str().unwrap().to_owned();
    let (plain, lake) = (at("a.csv"), at("l/{year}.csv"));
    for (args, why) in [
        (
            vec!["--archive", archive, "-o", &plain, "--only-changed"],
            "no placeholder",
        ),
        (
            vec!["--archive", archive, "-o", &plain, "--success-marker"],
            "no placeholder",
        ),
        (
            vec!["--archive", archive, "-o", &plain, "--manifest"],
            "needs a name",
        ),
        (
            vec!["--sandbox", "-o", &lake, "--only-changed"],
            "--archive",
        ),
        (
            vec![
                "--archive",
                archive,
                "-o",
                &lake,
                "--only-changed",
                "--limit",
                "3",
            ],
            "--limit",
        ),
        (
            vec![
                "--archive",
                archive,
                "-o",
                &lake,
                "--only-changed",
                "--no-clobber",
            ],
            "--no-clobber",
        ),
        (
            vec![
                "--archive",
                archive,
                "-o",
                &lake,
                "--manifest",
                "l/{year}.json",
            ],
            "placeholders",
        ),
    ] {
        let ended = trayscan(&[&["export"], &args[..]].concat()).output();
        assert_eq!(ended.code, Some(2), "{args:?}: {ended:?}");
        assert!(ended.stderr.contains(why), "{args:?}: {ended:?}");
    }
    // An invalid manifest is refused.
    fs::create_dir(scene.lake()).unwrap();
    fs::write(scene.lake().join("_manifest.json"), "[]").unwrap();
    let ended = scene.command(MONTHS, &[]).output().expect(2);
    assert!(ended.stderr.contains("remove it"), "{ended:?}");
    assert_eq!(files(&scene.lake()).len(), 1);
}
