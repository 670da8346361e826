//! Archives, standard input, text and batches of every kind.

use std::fs::{self, File};
use std::io::{Cursor, Read as _, Write as _};

use serde_json::{Value, json};

use super::{Folder, assert_equal, judged, report, verify};
use crate::fake::{Batch, FakeService};
use crate::harness::{Run, Server, export, run, trayscan};

#[test]
fn an_archive_can_be_the_file_or_the_source() {
    let server = Server::start(&["--page-size", "60"]);
    let folder = Folder::new();
    let whole = folder.export(&server, "whole.csv", &[]);
    let year = ["--start", "2025", "--end", "2025"];
    let part = folder.export(
        &server,
        "part.json.gz",
        &[&year[..], &["--where", "!warnings"]].concat(),
    );
    let manifest = folder.at("part.json.gz.manifest");
    let archive = folder.at("batches.db");
    let mut sync = trayscan(&["sync", &archive]);
    sync.service(&server);
    sync.output().expect(0);
    server.stop();

    let digest = folder.manifest("whole.csv")["set_digest"].clone();
    assert_eq!(report(&[&archive])["digest"], digest);
    assert_equal(&verify(&[&whole, "--against", &archive]), "against");
    assert_equal(
        &verify(&[&archive, "--against", &whole]),
        "the other way round",
    );
    assert_equal(
        &verify(&[&archive, "--manifest", &folder.at("whole.csv.manifest")]),
        "manifest",
    );
    let ended = verify(&[&part, "--archive", &archive, "--manifest", &manifest]);
    assert_equal(&ended, "in place of the service");
    let full = folder.at("year.csv");
    let args = ["export", "--archive", &archive, "-o", &full];
    assert_eq!(run(&[&args[..], &year].concat()).code, Some(0));
    assert_equal(
        &verify(&[&[&*full, "--archive", &archive], &year[..]].concat()),
        "dates",
    );

    let text = fs::read_to_string(&whole).unwrap();
    let fewer: Vec<&str> = text.lines().take(30).collect();
    let fewer = folder.write("fewer.csv", fewer.join("\n") + "\n");
    let report = report(&[&fewer, "--archive", &archive]);
    assert_eq!(report["against"]["kind"], "archive");
    let missing = 250 - report["batches"].as_u64().unwrap();
    assert_eq!(report["missing"]["count"], missing);
    let mut piped = trayscan(&["verify", "-"]);
    piped
        .stdin(File::open(&archive).unwrap())
        .output()
        .expect(2);
}

#[test]
fn hostile_text_survives_every_format() {
    let texts = [
        "plain",
        "a,b;c\td|e",
        "\"",
        "\"\"",
        "two\nlines\r\n",
        "\r",
        "=1+1",
        "'=1+1",
        "''=1",
        "+1",
        "-1.50",
        "@x",
        "'",
        "\t",
        "\\",
        "\u{0}",
        "\u{1b}[31m\u{202e}",
        "\u{feff}x",
        "🌱 ß 発芽",
        " ",
        "null",
        "12,50",
        "batch_id",
        "",
    ];
    let batches: Vec<Batch> = texts
        .iter()
        .enumerate()
        .map(|(number, text)| {
            let batch = Batch::new(&format!("{number}{text}"));
            ["batch_name", "crop_type", "comment"]
                .iter()
                .fold(batch, |batch, field| batch.with(field, json!(text)))
        })
        .collect();
    let service = FakeService::with(&batches);
    let folder = Folder::new();
    let export = |name: &str, args: &[&str]| {
        let path = folder.at(name);
        export(&service, &[&["-o", &path], args].concat()).expect(0);
        path
    };
    let reference = export("a.ndjson", &[]);
    for (name, flags) in [
        ("a.json", ""),
        ("a.csv", "--excel"),
        ("b.csv", ""),
        ("c.csv", "--decimal-comma --no-header"),
        ("d.csv", "--delimiter '"),
        ("e.csv", "--delimiter = --bom"),
        ("a.tsv.gz", ""),
        ("b.tsv", "--excel --no-header"),
    ] {
        let flags: Vec<&str> = flags.split_whitespace().collect();
        let path = export(name, &flags);
        assert_equal(&verify(&[&path, "--against", &reference]), name);
    }
    // Messages escape control characters.
    let only = folder.write("only.ndjson", batches[16].text());
    let ended = verify(&[&only, "--against", &reference]);
    let ended_json = verify(&[&reference, "--against", &only, "-f", "json"]);
    assert_eq!((ended.code, ended_json.code), (Some(7), Some(7)));
    assert!(
        ended.stdout.contains("  4two\\nlines\\u{d}\\n\n"),
        "{}",
        ended.stdout
    );
    for printed in [&ended.stdout, &ended.stderr, &ended_json.stdout] {
        let is_hidden =
            |letter: char| letter != '\n' && (letter.is_control() || letter == '\u{202e}');
        assert!(!printed.contains(is_hidden), "{printed:?}");
    }
    let report = judged(&ended_json);
    assert_eq!(report["extra"]["count"], texts.len() - 1);
    assert_eq!(report["extra"]["ids"][4], "4two\nlines\r\n");
}

#[test]
fn lenient_exports_can_be_verified() {
    let malformed = [
        ("number_of_images", "\"12\""),
        ("number_of_images", "null"),
        ("avg_germination_rate", "87.50"),
        ("avg_germination_rate", "-5.5"),
        ("number_of_images", "-3.5"),
        ("avg_germination_rate", "\"-abc\""),
        ("avg_germination_rate", "1e5"),
        ("batch_creation_date", "\"=2026\""),
        ("warnings", "\"maybe\""),
        ("comment", "{\"a\":[1,null]}"),
        ("comment", "\"\\ud800\""),
        ("crop_type", "7"),
        ("more", "true"),
    ];
    let mut batches = vec![Batch::new("0")];
    for (number, (field, value)) in (1..).zip(malformed) {
        batches.push(Batch::new(&number.to_string()).with(field, value));
    }
    let service = FakeService::with(&batches);
    let folder = Folder::new();
    let manifest = folder.at("manifest");
    for (name, flags) in [
        ("a.json", ""),
        ("b.ndjson", "--numbers"),
        ("c.csv", ""),
        ("d.csv", "--excel --no-header"),
        ("e.tsv", "--decimal-comma"),
        ("h.csv", "--excel --decimal-comma"),
        ("f.xlsx", ""),
        ("g.tsv", ""),
    ] {
        let path = folder.at(name);
        let mut args = vec!["--lenient", "-o", &path, "--manifest", &manifest];
        args.extend(flags.split_whitespace());
        export(&service, &args).expect(0);
        let ended = verify(&[&path, "--manifest", &manifest]);
        assert_equal(&ended, name);
        assert!(
            ended.stderr.contains("do not fit their fields"),
            "{ended:?}"
        );
        let mut command = trayscan(&["verify", &path, "--service", "--manifest", &manifest]);
        command
            .env("TRAYSCAN_BASE_URL", service.base_url())
            .env("TRAYSCAN_CLIENT_ID", "sandbox")
            .env("TRAYSCAN_CLIENT_SECRET", "secret");
        assert_equal(&command.output(), name);
    }
    // A number is never marked as text, and has the decimal comma.
    let excel = fs::read_to_string(folder.at("h.csv")).unwrap();
    assert!(
        excel.contains(";87,50;") && excel.contains(";-5,5;"),
        "{excel}"
    );
    assert!(
        excel.contains(";-3.5;") && !excel.contains("'-5"),
        "{excel}"
    );
    let [json, numbers, csv, tsv] =
        ["a.json", "b.ndjson", "c.csv", "g.tsv"].map(|name| folder.at(name));
    assert_equal(&verify(&[&json, "--against", &numbers]), "both have types");
    assert_equal(&verify(&[&csv, "--against", &tsv]), "neither has types");
    // A value of the wrong type differs from its text.
    let judged = report(&[&json, "--against", &csv]);
    let ids = json!({"1": ["number_of_images"], "9": ["warnings"], "10": ["comment"], "11": ["comment"], "12": ["crop_type"]});
    assert_eq!(judged["changed"]["fields"], ids);
    assert_eq!(judged["unknown_fields"], "not_compared");
}

#[test]
fn typed_columns_of_invalid_batches_match_their_manifest() {
    let malformed = [
        ("number_of_images", "\"12\""),
        ("avg_germination_rate", "87.50"),
        ("avg_germination_rate", "\"-abc\""),
        ("batch_creation_date", "\"=2026\""),
        ("warnings", "\"maybe\""),
        ("comment", "{\"a\":[1,null]}"),
        ("crop_type", "7"),
        ("batch_id", "77"),
    ];
    let mut batches = vec![Batch::new("0")];
    for (number, (field, value)) in (1..).zip(malformed) {
        batches.push(Batch::new(&number.to_string()).with(field, value));
    }
    let service = FakeService::with(&batches);
    let folder = Folder::new();
    let manifest = folder.at("manifest");
    let mut digests = Vec::new();
    for (name, format) in [
        ("a.parquet", "parquet"),
        ("b.sqlite", "sqlite"),
        ("{crop_type}.parquet", "parquet"),
        ("c.singer", "singer"),
        ("{crop_type}.singer", "singer"),
        ("d.xlsx", "xlsx"),
        ("e.csv", "csv"),
    ] {
        let path = folder.at(name);
        let mut args = vec!["--lenient", "-o", &path, "--manifest", &manifest];
        args.extend(["-f", format]);
        export(&service, &args).expect(0);
        let receipt: Value = serde_json::from_slice(&fs::read(&manifest).unwrap()).unwrap();
        let files = receipt["files"].as_array().unwrap();
        for file in files {
            let path = file["path"].as_str().unwrap();
            assert_equal(&verify(&[path, "--manifest", &manifest]), path);
            // The embedded digest matches too.
            assert_eq!(verify(&[path]).code, Some(0), "{path}");
        }
        digests.push(receipt["set_digest"].clone());
        if let [only] = &files[..] {
            let path = only["path"].as_str().unwrap();
            let mut command = trayscan(&["verify", path, "--service", "--manifest", &manifest]);
            command
                .env("TRAYSCAN_BASE_URL", service.base_url())
                .env("TRAYSCAN_CLIENT_ID", "sandbox")
                .env("TRAYSCAN_CLIENT_SECRET", "secret");
            assert_equal(&command.output(), name);
        }
    }
    // Typed formats store null; the others store the received value.
    assert_eq!(digests[0], digests[1]);
    assert_eq!(digests[0], digests[2]);
    assert_eq!(digests[0], digests[3]);
    assert_eq!(digests[0], digests[4]);
    assert_eq!(digests[5], digests[6]);
    assert_ne!(digests[0], digests[5]);
}

#[test]
fn a_wrong_embedded_digest_is_reported() {
    let server = Server::start(&["--batches", "40"]);
    let folder = Folder::new();
    // Replace the digest by one of the same length, in a file that is otherwise valid.
    for name in ["a.parquet", "a.xlsx"] {
        let path = folder.export(&server, name, &[]);
        let ended = verify(&[&path, "-f", "json"]).expect(0);
        let report: Value = ended.json();
        assert_eq!(report["claim"]["equal"], true);
        assert_eq!(report["claim"]["digest"], report["digest"]);
        assert_eq!(report["claim"]["batches"], 40);
        let digest = report["digest"].as_str().unwrap();
        let other = format!("{}{}", &digest[1..], &digest[..1]);
        assert_ne!(digest, other);
        let bytes = fs::read(&path).unwrap();
        let altered = if name.ends_with("xlsx") {
            repacked(&bytes, digest, &other)
        } else {
            replaced(&bytes, digest, &other)
        };
        let path = folder.write(&format!("altered.{name}"), &altered);
        let ended = verify(&[&path]).expect(7);
        assert!(
            ended
                .stderr
                .contains("does not match its own embedded digest"),
            "{ended:?}"
        );
        assert!(ended.stdout.contains(&other), "{ended:?}");
        let ended = verify(&[&path, "-f", "json"]);
        let report: Value = ended.json();
        assert_eq!(
            (&report["equal"], &report["claim"]["equal"]),
            (&json!(false), &json!(false))
        );
        // The batches themselves are unchanged.
        let csv = folder.export(&server, "a.csv", &[]);
        assert_equal(&verify(&[&path, "--against", &csv]), name);
    }
    // Formats without an embedded digest make no claim.
    let ended = verify(&[&folder.at("a.csv"), "-f", "json"]);
    let report: Value = ended.json();
    assert_eq!(report["claim"], Value::Null);
}

fn replaced(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let found = bytes
        .windows(from.len())
        .position(|window| window == from.as_bytes());
    let at = found.unwrap_or_else(|| panic!("no {from}"));
    bytes[at..at + from.len()].copy_from_slice(to.as_bytes());
    bytes
}

/// Repacks a workbook and replaces the only occurrence of `from`.
fn repacked(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    let mut archive = zip::ZipArchive::new(Cursor::new(bytes)).unwrap();
    let mut packed = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let mut times = 0;
    for place in 0..archive.len() {
        let mut part = archive.by_index(place).unwrap();
        let mut text = String::new();
        part.read_to_string(&mut text).unwrap();
        times += text.matches(from).count();
        let options = zip::write::SimpleFileOptions::default();
        let name = String::from_utf8(part.name_raw().to_vec()).unwrap();
        packed.start_file(name, options).unwrap();
        packed.write_all(text.replace(from, to).as_bytes()).unwrap();
    }
    assert_eq!(times, 1);
    packed.finish().unwrap().into_inner()
}

mod thorough {
    use super::*;

    #[test]
    #[ignore = "slow"]
    fn standard_input_can_be_verified() {
        let server = Server::start(&[]);
        let folder = Folder::new();
        let csv = folder.export(&server, "a.csv.gz", &["--decimal-comma"]);
        let json = folder.export(&server, "a.json", &[]);
        let short = folder.export(&server, "short.ndjson", &["--limit", "249"]);
        let piped = |path: &str, args: &[&str]| {
            let mut command = trayscan(&[&["verify"], args].concat());
            command.stdin(File::open(path).unwrap()).output()
        };
        let ended = piped(&csv, &["-"]);
        assert_equal(&ended, "alone");
        assert!(
            ended
                .stdout
                .starts_with("standard input contains 250 batches")
        );
        assert_equal(&piped(&csv, &["-", "--against", &json]), "first");
        assert_equal(&piped(&csv, &[&json, "--against", "-"]), "second");
        let ended = piped(&short, &["-", "--against", &json, "-f", "json"]);
        assert_eq!(judged(&ended)["missing"]["count"], 1);
        let ended = piped(&short, &[&json, "--against", "-", "-f", "json"]);
        assert_eq!(judged(&ended)["extra"]["count"], 1);
        let ended = piped(&csv, &["-", "--against", "-"]);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        // Larger than the memory buffer.
        let comment = format!("\"{}\"", "x".repeat(8 << 10));
        let batches =
            (0..1100).map(|id| Batch::new(&id.to_string()).with("comment", &comment).text());
        let batches: Vec<String> = batches.collect();
        let large = folder.write("large.ndjson", batches.join("\n") + "\n");
        assert!(fs::metadata(&large).unwrap().len() > 8 << 20);
        assert_equal(&piped(&large, &["-", "--against", &large]), "large");
        #[cfg(unix)]
        {
            // Files that can be read only once are accepted.
            let mut shell = Run::new("bash");
            let program = env!("CARGO_BIN_EXE_trayscan");
            shell.args([
                "-c",
                "\"$0\" verify <(cat \"$1\") --against <(cat \"$2\")",
                program,
                &csv,
                &json,
            ]);
            let ended = shell.output();
            assert_equal(&ended, "pipes");
        }
    }
}
