//! Manifests, lakes and the service.

use std::fs::{self};

use serde_json::{Value, json};

use super::{Folder, assert_equal, id, judged, report, verify, verify_with};
use crate::harness::{Server, export, run, trayscan};

#[test]
fn a_manifest_matches_its_file_and_its_batches() {
    let server = Server::start(&[]);
    let folder = Folder::new();
    let path = folder.export(&server, "a.csv", &[]);
    let manifest = folder.at("a.csv.manifest");
    let ended = verify(&[&path, "--manifest", &manifest]);
    assert_equal(&ended, "untouched");
    assert_eq!(ended.stderr, "");
    assert_eq!(
        report(&[&path, "--manifest", &manifest])["manifest"]["same_bytes"],
        true
    );

    // In another file, format and order, only the batches matter.
    let other = folder.export(&server, "b.json.gz", &["--sort", "crop_type"]);
    let ended = verify(&[&other, "--manifest", &manifest]);
    assert_equal(&ended, "another format");
    assert!(
        ended.stderr.contains("for a file with other bytes"),
        "{ended:?}"
    );
    assert_eq!(
        report(&[&other, "--manifest", &manifest])["manifest"]["same_bytes"],
        false
    );

    let text = fs::read_to_string(&path).unwrap();
    let digit = text.rfind(|letter: char| letter.is_ascii_digit()).unwrap();
    let mut tampered = text.clone();
    let new = if &text[digit..=digit] == "7" {
        "8"
    } else {
        "7"
    };
    tampered.replace_range(digit..=digit, new);
    let tampered = folder.write("tampered.csv", tampered);
    let ended = verify(&[&tampered, "--manifest", &manifest]).expect(7);
    assert!(
        ended
            .stderr
            .contains("the same number of batches, but different content"),
        "{ended:?}"
    );
    assert!(ended.stderr.contains("`--against`"), "{ended:?}");

    let fewer = folder.write(
        "fewer.csv",
        text.lines()
            .take(40)
            .fold(String::new(), |all, line| all + line + "\n"),
    );
    verify(&[&fewer, "--manifest", &manifest]).expect(7);

    for (args, why) in [
        (
            &["--seed", "2"][..],
            "the same number of batches, but different content",
        ),
        (&["--batches", "7"], "250 batches instead of 7"),
    ] {
        folder.export(&Server::start(args), "foreign.csv", &[]);
        let ended = verify(&[&path, "--manifest", &folder.at("foreign.csv.manifest")]).expect(7);
        assert!(ended.stderr.contains(why), "{ended:?}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn the_bytes_of_a_file_whose_name_is_not_utf_8_are_compared() {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt as _;
    let server = Server::start(&["--batches", "3"]);
    let folder = Folder::new();
    let path = folder
        .0
        .path()
        .join(OsString::from_vec(b"\xff.csv".to_vec()));
    let manifest = folder.at("m.json");
    let mut run = trayscan(&["export", "--manifest", &manifest, "-o"]);
    run.arg(&path).service(&server).output().expect(0);
    let verified = || {
        let mut run = trayscan(&["verify", "--manifest", &manifest]);
        run.arg(&path).output()
    };
    assert_eq!(verified().expect(0).stderr, "");
    // The same values in other bytes.
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace('\n', "\r\n")).unwrap();
    let ended = verified().expect(7);
    assert!(
        ended.stderr.contains("different bytes (SHA-256)"),
        "{ended:?}"
    );
}

#[test]
fn an_invalid_or_incomplete_manifest_is_refused() {
    let server = Server::start(&["--batches", "3"]);
    let folder = Folder::new();
    let path = folder.export(&server, "a.csv", &[]);
    let whole = folder.manifest("a.csv");
    let altered = |change: &dyn Fn(&mut Value)| {
        let mut manifest = whole.clone();
        change(&mut manifest);
        manifest.to_string()
    };
    for (text, why) in [
        (
            altered(&|m| m["complete"] = json!(false)),
            "does not describe a complete export",
        ),
        (
            altered(&|m| drop(m.as_object_mut().unwrap().remove("complete"))),
            "does not describe a complete export",
        ),
        (
            altered(&|m| m["request"]["fields"] = json!(["batch_id", "novelty"])),
            "its fields are not those of a batch",
        ),
        (
            altered(&|m| m["request"]["start"] = json!("soon")),
            "its dates are invalid",
        ),
        (
            altered(&|m| m["request"]["where"] = json!(["novelty=1"])),
            "a condition is invalid",
        ),
        (
            altered(&|m| drop(m.as_object_mut().unwrap().remove("set_digest"))),
            "is not a manifest",
        ),
        (fs::read_to_string(&path).unwrap(), "is not a manifest"),
        (String::new(), "is not a manifest"),
    ] {
        let manifest = folder.write("m.json", text);
        let ended = verify(&[&path, "--manifest", &manifest]);
        assert_eq!(ended.code, Some(2), "{why}: {ended:?}");
        assert!(ended.stderr.contains(why), "{why}: {ended:?}");
        assert_eq!(ended.stdout, "");
    }
    verify(&[&path, "--manifest", &folder.at("nowhere")]).expect(2);
    // The bytes match, so the manifest must be wrong.
    let manifest = folder.write("m.json", altered(&|m| m["set_digest"] = json!("00")));
    let ended = verify(&[&path, "--manifest", &manifest]).expect(7);
    assert!(
        ended.stderr.contains("the manifest was modified"),
        "{ended:?}"
    );
    // It must not contradict itself.
    for (text, why) in [
        (
            altered(&|m| m["files"][0]["batches"] = json!(1)),
            "batches, but 1 in its files",
        ),
        (
            altered(&|m| m["files"][0]["set_digest"] = json!("00")),
            "has another digest for its only file",
        ),
    ] {
        let manifest = folder.write("m.json", text);
        let ended = verify(&[&path, "--manifest", &manifest]).expect(7);
        assert!(ended.stderr.contains(why), "{why}: {ended:?}");
    }
    // Without a hash, a note says that the bytes were not compared.
    let unhashed = altered(&|m| drop(m["files"][0].as_object_mut().unwrap().remove("sha256")));
    let manifest = folder.write("m.json", unhashed);
    let ended = verify(&[&path, "--manifest", &manifest]).expect(0);
    let note = "were not compared: the manifest has no SHA-256 of them";
    assert!(ended.stderr.contains(note), "{ended:?}");
    // A manifest is not an export.
    let ended = verify(&[&folder.at("a.csv.manifest")]).expect(7);
    assert!(ended.stderr.contains("this is a manifest"), "{ended:?}");
}

#[test]
fn one_of_several_files_can_be_verified_alone() {
    let server = Server::start(&[]);
    let folder = Folder::new();
    let [one, two] = [("2024.csv", "2024"), ("2025.csv", "2025")]
        .map(|(name, year)| folder.export(&server, name, &["--start", year, "--end", year]));
    let both = folder.export(&server, "both.csv", &["--start", "2024", "--end", "2025"]);
    let mut manifest = folder.manifest("both.csv");
    manifest["files"] = ["2024.csv", "2025.csv"]
        .map(|name| folder.manifest(name)["files"][0].clone())
        .into_iter()
        .collect();
    let many = folder.write("many.json", manifest.to_string());
    for path in [&one, &two, &both] {
        assert_equal(&verify(&[path, "--manifest", &many]), path);
    }
    // In another dialect, the file is identified by its name.
    fs::create_dir(folder.at("copy")).unwrap();
    let copy = folder.export(
        &server,
        "copy/2024.csv",
        &["--start", "2024", "--end", "2024", "--excel"],
    );
    assert_equal(&verify(&[&copy, "--manifest", &many]), "another dialect");
    fs::write(&one, fs::read(&two).unwrap()).unwrap();
    let report_of = |path: &str| report(&[path, "--manifest", &many]);
    assert_eq!(
        report_of(&one)["equal"],
        false,
        "another file of the manifest"
    );
    let elsewhere = folder.write("elsewhere.csv", fs::read_to_string(&two).unwrap());
    assert_eq!(
        report_of(&elsewhere)["equal"],
        true,
        "identified by its bytes"
    );
    let cut = fs::read_to_string(&two).unwrap();
    let cut = cut.lines().take(9).map(|line| format!("{line}\n"));
    fs::write(&one, cut.collect::<String>()).unwrap();
    assert_eq!(report_of(&one)["equal"], false);

    // Early manifests have no count and digest per file.
    for file in manifest["files"].as_array_mut().unwrap() {
        let file = file.as_object_mut().unwrap();
        file.remove("batches").unwrap();
        file.remove("set_digest").unwrap();
    }
    folder.write("many.json", manifest.to_string());
    assert_eq!(report_of(&two)["equal"], true);
    assert_eq!(report_of(&one)["equal"], false);
    verify_with(&server, &[&two, "--manifest", &many]).expect(2);
}

#[test]
fn each_file_of_a_lake_matches_its_manifest() {
    let server = Server::start(&[]);
    let folder = Folder::new();
    let (lake, manifest) = (
        folder.at("lake/{year}/{crop_type}.csv.gz"),
        folder.at("lake.json"),
    );
    let args = ["-o", &lake, "--manifest", &manifest];
    export(&server, &args).expect(0);
    let files: Value = serde_json::from_slice(&fs::read(&manifest).unwrap()).unwrap();
    let files = files["files"].as_array().unwrap().clone();
    assert!(files.len() > 10);
    for file in files.iter().step_by(files.len() / 5) {
        let path = file["path"].as_str().unwrap();
        let ended = verify(&[path, "--manifest", &manifest]);
        assert_equal(&ended, path);
        assert_eq!(ended.stderr, "", "{path}");
        let other = files
            .iter()
            .find(|other| other["batches"] != file["batches"])
            .unwrap();
        fs::copy(path, folder.at("kept")).unwrap();
        let foreign = folder.export(&server, "foreign.csv.gz", &["--limit", "3"]);
        fs::copy(foreign, path).unwrap();
        assert_eq!(
            verify(&[path, "--manifest", &manifest]).code,
            Some(7),
            "{path}"
        );
        fs::copy(folder.at("kept"), path).unwrap();
        let other = other["path"].as_str().unwrap();
        assert_eq!(verify(&[path, "--against", other]).code, Some(7), "{path}");
    }
}

#[test]
fn the_note_about_unknown_fields_says_why_they_were_not_compared() {
    let server = Server::start(&["--batches", "3", "--fault", "unknown-fields"]);
    let folder = Folder::new();
    let json = folder.export(&server, "a.ndjson", &[]);
    let csv = folder.export(&server, "a.csv", &[]);
    for (args, why) in [
        (
            &[&*json, "--against", &json, "--fields", "batch_id"][..],
            "`--fields` asks for others",
        ),
        (&[&*json, "--against", &csv], "only one side keeps them"),
    ] {
        let ended = verify(args).expect(0);
        let note = format!("unknown fields were not compared: {why}");
        assert!(ended.stderr.contains(&note), "{ended:?}");
    }
}

#[test]
fn other_fields_do_not_count_if_those_of_the_manifest_are_named() {
    let server = Server::start(&["--batches", "20"]);
    let folder = Folder::new();
    let whole = folder.export(&server, "whole.csv", &[]);
    folder.export(&server, "some.csv", &["--fields", "crop_type,batch_id"]);
    let manifest = folder.at("some.csv.manifest");
    let fields = ["--fields", "batch_id,crop_type"];
    let with_fields =
        |path: &str| verify(&[&[path, "--manifest", &manifest], &fields[..]].concat());
    assert_equal(&with_fields(&whole), "the same fields");
    let ended = verify(&[&whole, "--manifest", &manifest]).expect(7);
    assert!(ended.stderr.contains("it has more fields"), "{ended:?}");
    let text = fs::read_to_string(&whole).unwrap();
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let fewer = folder.write("fewer.csv", lines[..20].concat());
    with_fields(&fewer).expect(7);
}

#[test]
fn the_service_gets_the_request_of_the_manifest() {
    let server = Server::start(&["--page-size", "20"]);
    let folder = Folder::new();
    for (name, flags) in [
        ("a.csv", &[][..]),
        ("b.json", &["--start", "2024-03", "--end", "2025-02"]),
        (
            "c.tsv.gz",
            &["--where", "crop_type~o", "--where", "!warnings", "--excel"],
        ),
        (
            "d.ndjson",
            &["--fields", "comment,batch_id", "--limit", "33"],
        ),
        (
            "e.csv",
            &[
                "--sort",
                "avg_germination_rate:desc",
                "--limit",
                "10",
                "--no-header",
                "--fields",
                "-batch_name",
            ],
        ),
        ("f.json", &["--where", "batch_id=nobody"]),
    ] {
        let path = folder.export(&server, name, flags);
        let manifest = folder.at(&format!("{name}.manifest"));
        let ended = verify_with(&server, &[&path, "--manifest", &manifest]);
        assert_equal(&ended, name);
        assert!(
            !ended.stdout.contains(&server.client_secret)
                && !ended.stderr.contains(&server.client_secret)
        );
    }
    let path = folder.at("b.json");
    let dates = ["--start", "2024-03", "--end", "2025-02"];
    assert_equal(
        &verify_with(&server, &[&[&*path], &dates[..]].concat()),
        "dates",
    );
    let ended = verify_with(&server, &[&path]);
    assert_eq!(
        ended.code,
        Some(7),
        "all dates include more batches: {ended:?}"
    );

    // "1d" is relative to the time of the export.
    let condition = "batch_creation_date<2024-06-01T10:00:00Z";
    let path = folder.export(&server, "g.csv", &["--where", condition]);
    let mut manifest = folder.manifest("g.csv");
    manifest["started"] = json!("2024-06-02T10:00:00.250Z");
    manifest["request"]["where"] = json!(["batch_creation_date<1d"]);
    let manifest = folder.write("g.json", manifest.to_string());
    assert_equal(
        &verify_with(&server, &[&path, "--manifest", &manifest]),
        "1d",
    );
}

#[test]
fn changes_in_the_service_are_reported() {
    let server = Server::start(&["--page-size", "40"]);
    let folder = Folder::new();
    let path = folder.export(&server, "a.ndjson", &[]);
    let manifest = folder.at("a.ndjson.manifest");
    let lines = folder.lines("a.ndjson");
    let stranger = lines[0].replace(&id(&lines[0]), "stranger");
    let changed = lines[1].replacen("\"number_of_images\":", "\"number_of_images\":9", 1);
    let text = [&[stranger, changed], &lines[3..]].concat().join("\n");
    let edited = folder.write("edited.ndjson", text + "\n");
    let ended = verify_with(&server, &[&edited, "-f", "json"]);
    let report = judged(&ended);
    let mut missing = vec![id(&lines[0]), id(&lines[2])];
    let mut found: Vec<String> = serde_json::from_value(report["missing"]["ids"].clone()).unwrap();
    missing.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, missing);
    assert_eq!(report["extra"], json!({"count": 1, "ids": ["stranger"]}));
    assert_eq!(
        report["changed"]["fields"],
        json!({id(&lines[1]): ["number_of_images"]})
    );
    assert_eq!(
        (&report["against"]["kind"], &report["against"]["batches"]),
        (&json!("service"), &json!(250))
    );

    let other = Server::start(&["--seed", "2", "--batches", "99"]);
    let ended = verify_with(&other, &[&path, "--manifest", &manifest, "-f", "json"]);
    let report = judged(&ended);
    assert_eq!(
        (&report["missing"]["count"], &report["extra"]["count"]),
        (&json!(99), &json!(250))
    );
    assert_eq!(report["manifest"]["equal"], true);
    assert!(ended.stderr.contains("has changed since"), "{ended:?}");
    assert!(
        ended.stderr.contains("note: the manifest is from http://"),
        "{ended:?}"
    );

    let ended = verify_with(
        &Server::start(&["--fault", "503:1"]),
        &[&path, "--retries", "0"],
    );
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(5), ""),
        "{ended:?}"
    );
}

#[test]
fn the_sandbox_can_be_the_service() {
    let folder = Folder::new();
    let path = folder.at("a.csv");
    assert_eq!(run(&["export", "--sandbox", "-o", &path]).code, Some(0));
    assert_equal(&verify(&[&path, "--service", "--sandbox"]), "sandbox");
}

#[test]
fn an_archive_of_the_sandbox_is_of_the_same_service() {
    let folder = Folder::new();
    let [path, receipt, archive] = ["a.csv", "m.json", "a.db"].map(|name| folder.at(name));
    run(&["export", "--sandbox", "-o", &path, "--manifest", &receipt]).expect(0);
    run(&["sync", "--sandbox", &archive]).expect(0);
    let ended = verify(&[&path, "--manifest", &receipt, "--archive", &archive]);
    assert_equal(&ended, "both are of the sandbox");
    assert!(!ended.stderr.contains("the manifest is from"), "{ended:?}");
}
