//! The manifest of an export: its content, and that it is correct.

use std::fs;
use std::path::Path;

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use crate::data::hex;
use crate::digest::{set_digest, unknown_fields_digest};
use crate::fake::{Answer, FakeService, token};
use crate::harness::{Server, export};

/// Exports with a manifest into `folder`, and returns the manifest.
pub(crate) fn receipt(server: &Server, folder: &Path, name: &str, args: &[&str]) -> Value {
    let file = folder.join(name);
    let manifest = folder.join("manifest.json");
    let place = [
        "-o",
        file.to_str().unwrap(),
        "--manifest",
        manifest.to_str().unwrap(),
    ];
    export(server, &[&place[..], args].concat()).expect(0);
    serde_json::from_slice(&fs::read(manifest).unwrap()).unwrap()
}

#[test]
fn only_batches_repeated_by_the_service_are_duplicates() {
    // With several workers, the batches of the first page are requested again.
    let folder = TempDir::new().unwrap();
    for (faults, any) in [(&[][..], false), (&["--fault", "duplicates:0.2"], true)] {
        let server = Server::start(&[&["--batches", "700", "--page-size", "20"], faults].concat());
        let manifest = receipt(&server, folder.path(), "a.csv", &["--parallel", "4"]);
        assert!(manifest["windows"].as_array().unwrap().len() > 1);
        let dropped = manifest["duplicates_dropped"].as_u64().unwrap();
        assert_eq!(dropped > 0, any, "{dropped} with {faults:?}");
    }
}

#[test]
fn it_describes_the_request_and_the_result() {
    let server = Server::start(&[
        "--batches",
        "700",
        "--page-size",
        "100",
        "--fault",
        "duplicates:0.2",
    ]);
    let folder = TempDir::new().unwrap();
    let conditions = [
        "--where",
        "warnings",
        "--sort",
        "batch_name",
        "--limit",
        "5",
    ];
    let range = [
        "--start",
        "2024",
        "--end",
        "2025",
        "--fields",
        "batch_id,warnings",
    ];
    let manifest = receipt(
        &server,
        folder.path(),
        "a.csv",
        &[&conditions[..], &range].concat(),
    );
    let request = &manifest["request"];
    assert_eq!(request["start"], "2024-01-01T00:00:00Z");
    assert_eq!(request["end"], "2026-01-01T00:00:00Z");
    assert_eq!(request["excludes_end"], true);
    assert_eq!(
        request["fields"],
        serde_json::json!(["batch_id", "warnings"])
    );
    assert_eq!(request["where"], serde_json::json!(["warnings"]));
    assert_eq!(
        (&request["sort"], &request["limit"]),
        (&"batch_name".into(), &5.into())
    );
    assert_eq!(
        (&manifest["complete"], &manifest["version"]),
        (&true.into(), &"v2".into())
    );
    assert_eq!(manifest["batches"], 5);
    assert!(manifest["duplicates_dropped"].as_u64().unwrap() > 0);
    let windows = manifest["windows"].as_array().unwrap();
    assert_eq!(windows.len(), 1);
    assert!(windows[0]["pages"].as_u64().unwrap() > 1);
    assert!(manifest["started"].as_str().unwrap() <= manifest["ended"].as_str().unwrap());
    assert!(!manifest.to_string().contains(&server.client_secret));
}

#[test]
fn it_has_the_warnings_of_the_run() {
    let server = Server::start(&["--fault", "v2-missing"]);
    let folder = TempDir::new().unwrap();
    let (lake, manifest) = (
        folder.path().join("lake"),
        folder.path().join("lake/m.json"),
    );
    let output = lake.join("{year}.csv");
    let args = [
        "-o",
        output.to_str().unwrap(),
        "--manifest",
        manifest.to_str().unwrap(),
    ];
    let warnings = || {
        let manifest: Value = serde_json::from_slice(&fs::read(&manifest).unwrap()).unwrap();
        let warnings = manifest["warnings"].as_array().unwrap().iter();
        let warnings = warnings.map(|warning| warning.as_str().unwrap().to_owned());
        warnings.collect::<Vec<String>>()
    };
    let shown = |output: &str| {
        let lines = output.lines();
        let warnings = lines.filter_map(|line| line.strip_prefix("warning: "));
        warnings.map(str::to_owned).collect::<Vec<String>>()
    };
    export(&server, &args).expect(0);
    // The range cuts a year, and the files of earlier years are not in the manifest.
    let args = [&args[..], &["--start", "2025-06"]].concat();
    let ended = export(&server, &args).expect(0);
    let all = shown(&ended.stderr);
    for words in [
        "using version 1",
        "the range begins within 2025",
        "not in its manifest",
        "is among the data files",
    ] {
        assert!(all.iter().any(|warning| warning.contains(words)), "{words}");
    }
    assert_eq!(warnings(), all);
    // Those that are not shown count, too.
    export(&server, &[&args[..], &["-qq"]].concat()).expect(0);
    assert!(warnings().len() >= 3, "{:?}", warnings());
}

#[test]
fn size_and_hash_match_the_file() {
    let server = Server::start(&[]);
    let folder = TempDir::new().unwrap();
    for name in ["a.csv", "a.json", "a.ndjson.gz", "a.tsv.zst"] {
        let manifest = receipt(&server, folder.path(), name, &[]);
        let bytes = fs::read(folder.path().join(name)).unwrap();
        let file = &manifest["files"][0];
        assert!(file["path"].as_str().unwrap().ends_with(name));
        assert_eq!(file["bytes"], bytes.len());
        assert_eq!(file["sha256"], hex(&Sha256::digest(&bytes)));
    }
}

#[test]
fn the_set_digest_depends_only_on_the_batches() {
    let digest = |server: &Server, name: &str, args: &[&str]| {
        let folder = TempDir::new().unwrap();
        receipt(server, folder.path(), name, args)["set_digest"].clone()
    };
    let server = Server::start(&["--page-size", "30"]);
    let reference = digest(&server, "a.ndjson", &[]);
    assert_eq!(reference.as_str().unwrap().len(), 64);
    assert_eq!(digest(&server, "a.csv", &["--excel"]), reference);
    assert_eq!(digest(&server, "a.json.gz", &["--numbers"]), reference);
    assert_eq!(
        digest(&server, "a.json", &["--sort", "comment:desc"]),
        reference
    );
    assert_eq!(digest(&server, "a.json", &["--api", "v1"]), reference);
    let shuffled = Server::start(&["--fault", "shuffle", "--fault", "duplicates:0.5"]);
    assert_eq!(digest(&shuffled, "a.tsv", &[]), reference);

    assert_ne!(digest(&server, "a.json", &["--limit", "249"]), reference);
    assert_ne!(
        digest(&server, "a.json", &["--fields", "-comment"]),
        reference
    );
    assert_ne!(
        digest(&Server::start(&["--seed", "2"]), "a.json", &[]),
        reference
    );
}

#[test]
fn a_failed_export_keeps_the_old_manifest() {
    let server = Server::start(&["--fault", "503:1"]);
    let folder = TempDir::new().unwrap();
    let manifest = folder.path().join("manifest.json");
    fs::write(&manifest, "old").unwrap();
    let file = folder.path().join("a.csv");
    let place = [
        "-o",
        file.to_str().unwrap(),
        "--manifest",
        manifest.to_str().unwrap(),
    ];
    export(&server, &[&place[..], &["--retries", "0"]].concat()).expect(5);
    assert_eq!(fs::read_to_string(&manifest).unwrap(), "old");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn it_cannot_be_the_data_file() {
    let server = Server::start(&[]);
    export(&server, &["-o", "a.csv", "--manifest", "a.csv"]).expect(2);
}

#[cfg(unix)]
#[test]
fn it_needs_its_own_file_and_respects_no_clobber() {
    let server = Server::start(&[]);
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    for manifest in ["-", "/dev/stdout"] {
        export(&server, &["--manifest", manifest]).expect(2);
    }
    fs::write(at("data.csv"), "old").unwrap();
    std::os::unix::fs::symlink(at("data.csv"), at("link.json")).unwrap();
    let ended = export(
        &server,
        &["-o", &at("data.csv"), "--manifest", &at("link.json")],
    );
    assert_eq!(ended.code, Some(2), "through a link: {ended:?}");
    fs::write(at("old.json"), "old").unwrap();
    let flags = [
        "-o",
        &at("new.csv"),
        "--manifest",
        &at("old.json"),
        "--no-clobber",
    ];
    export(&server, &flags).expect(8);
    assert_eq!(fs::read_to_string(at("old.json")).unwrap(), "old");
    assert!(!folder.path().join("new.csv").exists());
}

/// The manual page as plain text, without roff escapes.
fn manifest_page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("man/trayscan-manifest.5");
    fs::read_to_string(path).unwrap().replace("\\-", "-")
}

#[test]
fn the_manual_page_names_every_key() {
    let server = Server::start(&["--batches", "3"]);
    let folder = TempDir::new().unwrap();
    let receipt = receipt(&server, folder.path(), "a.ndjson", &["--where", "warnings"]);
    let page = manifest_page();
    let mut keys: Vec<&String> = receipt.as_object().unwrap().keys().collect();
    for part in [
        &receipt["request"],
        &receipt["files"][0],
        &receipt["windows"][0],
    ] {
        keys.extend(part.as_object().unwrap().keys());
    }
    assert!(keys.len() > 30);
    for key in keys {
        assert!(page.contains(&format!("\\fB{key}\\fR")), "{key}");
    }
}

#[test]
fn the_test_vector_in_the_manual_page_is_correct() {
    let page = manifest_page();
    let batches: Vec<&str> = page
        .lines()
        .filter(|line| line.starts_with("{\"batch_id\""))
        .collect();
    let digests: Vec<&str> = page
        .lines()
        .filter(|line| line.len() == 64 && line.bytes().all(|byte| byte.is_ascii_hexdigit()))
        .collect();
    let values: Vec<Value> = batches
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let body = format!("{{\"data\":[{}],\"next_token\":null}}", batches.join(","));
    let service = FakeService::answering(vec![token()], vec![Answer::ok(body)]);
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let args = ["-o", &at("a.ndjson"), "--manifest", &at("m.json")];
    export(&service, &args).expect(0);
    let receipt: Value = serde_json::from_slice(&fs::read(at("m.json")).unwrap()).unwrap();
    assert_eq!(receipt["set_digest"], digests[0]);
    assert_eq!(receipt["unknown_fields_digest"], digests[1]);
    // The test implementation of the manual page computes both digests.
    let fields = receipt["request"]["fields"].as_array().unwrap();
    let names: Vec<&str> = fields.iter().map(|name| name.as_str().unwrap()).collect();
    let unknown = unknown_fields_digest(&[("b", r#"{"site":"North"}"#)]);
    assert_eq!(digests, [set_digest(&values, &names), unknown]);
}
