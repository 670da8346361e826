//! Files and flags that are refused.

use std::fs::{self};
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use super::{COMPRESSIONS, FORMATS, Folder, assert_equal, report, verify, verify_command};
use crate::harness::{Server, export, run, trayscan};

#[test]
fn truncated_files_are_never_accepted() {
    let server = Server::start(&["--batches", "40"]);
    let folder = Folder::new();
    for format in FORMATS {
        for compression in COMPRESSIONS {
            let name = format!("a.{format}{compression}");
            let path = folder.export(&server, &name, &[]);
            let bytes = fs::read(&path).unwrap();
            let half = bytes.len() / 2;
            // Whole lines would be a whole file.
            let half = if bytes[half - 2..=half].contains(&b'\n') {
                half - 4
            } else {
                half
            };
            for cut in [half, bytes.len() - 4] {
                let path = folder.write(&format!("cut.{name}"), &bytes[..cut]);
                let ended = verify(&[&path]);
                assert!(ended.stderr.contains(&path), "{ended:?}");
                if compression.is_empty() && format.ends_with("sv") && cut + 4 == bytes.len() {
                    // All cells are present, but the last one may be incomplete.
                    assert_eq!(ended.code, Some(0), "{ended:?}");
                    assert!(
                        ended.stderr.contains("the last line has no line ending"),
                        "{ended:?}"
                    );
                } else {
                    assert_eq!(ended.code, Some(7), "{name} at {cut}: {ended:?}");
                }
            }
        }
    }
    let path = folder.write("quotes.csv", "batch_id,comment\na,b\nc,\"d");
    assert_eq!(verify(&[&path]).code, Some(7));
}

#[test]
fn a_table_is_refused_also_with_its_manifest() {
    let server = Server::start(&["--batches", "3"]);
    let folder = Folder::new();
    let path = folder.export(&server, "a.txt", &["-f", "table"]);
    let manifest = folder.at("a.txt.manifest");
    for args in [&[&*path][..], &[&path, "--manifest", &manifest]] {
        let ended = verify(args).expect(2);
        assert!(ended.stderr.contains("is a table for people"), "{ended:?}");
        assert!(!ended.stderr.contains("modified"), "{ended:?}");
    }
    fs::create_dir(folder.at("lake")).unwrap();
    let (lake, template) = (folder.at("lake"), folder.at("lake/{month}.txt"));
    let args = ["-o", &template, "-f", "table", "--manifest"];
    export(&server, &args).expect(0);
    let ended = verify(&[&lake]).expect(2);
    assert!(ended.stderr.contains("has tables for people"), "{ended:?}");
}

#[test]
fn lines_in_a_file_that_is_an_array_by_its_name_draw_a_warning() {
    let server = Server::start(&["--batches", "3"]);
    let folder = Folder::new();
    let words = "is a JSON array, but it is one object per line";
    let lines = fs::read(folder.export(&server, "a.ndjson", &[])).unwrap();
    let renamed = folder.write("lines.json", lines);
    let ended = verify(&[&renamed]);
    assert_equal(&ended, "lines");
    assert!(ended.stderr.contains(words), "{ended:?}");
    // Once, even if the file is read twice.
    let whole = folder.export(&server, "whole.csv", &[]);
    let ended = verify(&[&renamed, "--against", &whole, "--fields", "batch_id"]);
    assert_equal(&ended, "lines against");
    assert_eq!(ended.stderr.matches(words).count(), 1, "{ended:?}");
    let array = verify(&[&folder.export(&server, "a.json", &[])]);
    assert!(!array.stderr.contains(words), "{array:?}");
    let singer = folder.export(&server, "s.json", &["-f", "singer"]);
    let ended = verify(&[&singer]);
    assert!(!ended.stderr.contains(words), "{ended:?}");
    let renamed = folder.write("s.csv", fs::read(&singer).unwrap());
    let ended = verify(&[&renamed]).expect(7);
    assert!(
        ended.stderr.contains("but it has singer messages"),
        "{ended:?}"
    );
}

#[test]
fn an_empty_export_is_equal_in_every_format() {
    let server = Server::start(&["--batches", "3"]);
    let folder = Folder::new();
    let nothing = ["--where", "batch_id=nobody"];
    let reference = folder.export(&server, "a.json", &nothing);
    let flags = [
        &[][..],
        &["--no-header"],
        &["--excel"],
        &["--bom", "--no-header"],
    ];
    let mut all = vec![("x.ndjson", &[][..]), ("x.json.gz", &[])];
    all.extend(flags.iter().map(|flags| ("x.csv", *flags)));
    all.extend(flags.iter().map(|flags| ("x.tsv.zst", *flags)));
    for (name, flags) in all {
        let path = folder.export(&server, name, &[&nothing[..], flags].concat());
        let manifest = folder.at(&format!("{name}.manifest"));
        assert_equal(&verify(&[&path, "--manifest", &manifest]), name);
        if name == "x.csv" && flags == ["--no-header"] {
            // Without a manifest, it looks like a file that lost its content.
            assert_eq!(verify(&[&path]).code, Some(7));
            continue;
        }
        let ended = verify(&[&path, "--against", &reference]);
        assert_equal(&ended, name);
        assert!(ended.stdout.contains(": 0 batches, "), "{ended:?}");
        assert_equal(&verify(&[&path]), name);
    }
    let whole = folder.export(&server, "whole.csv", &[]);
    assert_eq!(
        report(&[&reference, "--against", &whole])["missing"]["count"],
        3
    );
    assert_eq!(
        report(&[&whole, "--against", &reference])["extra"]["count"],
        3
    );
    let some = folder.export(
        &server,
        "some.csv",
        &["--fields", "batch_id", "--where", "batch_id=nobody"],
    );
    assert_equal(
        &verify(&[&some, "--against", &reference]),
        "fields of nothing",
    );
}

#[test]
fn files_that_are_not_exports_are_refused_with_a_reason() {
    let server = Server::start(&["--batches", "3"]);
    let folder = Folder::new();
    let csv = folder.export(&server, "a.csv", &[]);
    folder.export(&server, "a.txt", &["-f", "table"]);
    for (name, bytes, code, why) in [
        (
            "b.db",
            &b"SQLite format 3\0\0\0"[..],
            7,
            "it ends inside its header",
        ),
        (
            "b.xlsx",
            b"PK\x03\x04...",
            7,
            "the spreadsheet cannot be read",
        ),
        ("b.parquet", b"PAR1...", 7, "is damaged or cut short"),
        (
            "b.csv",
            b"<html>\n<body>\n",
            7,
            "line 1: expected field names",
        ),
        (
            "c.csv",
            b"batch_id,comment\na,b\n,c\n",
            7,
            "line 3: `batch_id` is empty",
        ),
        (
            "c.ndjson",
            b"{\"batch_id\":\"a\"}\n{\"comment\":\"b\"}",
            7,
            "batch 2: `batch_id` is missing",
        ),
        (
            "d.csv",
            b"batch_id,comment\na,b\nb,c,d\n",
            7,
            "line 3: found 3 cells, expected 2",
        ),
        (
            "d.ndjson",
            b"{\"batch_id\":\"a\",\"batch_id\":\"b\"}",
            7,
            "batch 1: `batch_id` appears twice",
        ),
    ] {
        let path = folder.write(name, bytes);
        for args in [&[&*path][..], &[&csv, "--against", &path]] {
            let ended = verify(args).expect(code);
            assert!(ended.stderr.contains(why), "{why}: {ended:?}");
            assert_eq!(ended.stdout, "", "{name}");
        }
    }
    fs::create_dir(folder.at("empty")).unwrap();
    for (path, why) in [
        (folder.at("a.txt"), "is a table for people"),
        (folder.at("empty"), "there is no export in the folder"),
        (folder.at("nowhere.csv"), "check the name of the file"),
    ] {
        let ended = verify(&[&path]).expect(2);
        assert!(ended.stderr.contains(why), "{ended:?}");
    }
    // Invalid values only cause a warning; a comparison detects the change.
    let text = fs::read_to_string(&csv)
        .unwrap()
        .replace("false\n", "maybe\n");
    let odd = folder.write("odd.csv", text);
    let ended = verify(&[&odd]);
    assert_equal(&ended, "odd values");
    assert!(
        ended
            .stderr
            .contains("line 2, `warnings` is not true or false"),
        "{ended:?}"
    );
    assert_eq!(
        verify(&[&odd, "--manifest", &folder.at("a.csv.manifest")]).code,
        Some(7)
    );
}

#[test]
fn conflicting_flags_are_refused() {
    let folder = Folder::new();
    let path = folder.write("a.csv", "batch_id\na\n");
    for flags in [
        "--manifest m --against b",
        "--against b --service",
        "--service --manifest m --start 2024",
        "--against b --end 2024",
        "--archive b --service",
        "--archive b --sandbox",
        "--start 2024",
        "--sandbox",
        "--base-url http://127.0.0.1:1",
        "--service --start never",
    ] {
        let flags: Vec<&str> = flags.split(' ').collect();
        let ended = verify(&[&[&*path], &flags[..]].concat());
        assert_eq!(ended.code, Some(2), "{flags:?}: {ended:?}");
        assert_eq!(ended.stdout, "", "{flags:?}");
    }
    assert_eq!(run(&["verify"]).code, Some(2));
}

#[cfg(unix)]
#[test]
fn a_signal_stops_it_and_changes_nothing() {
    use crate::files::names;
    use std::os::unix::fs::MetadataExt as _;

    let server = Server::start(&["--page-size", "10", "--fault", "latency:100ms"]);
    let folder = Folder::new();
    let path = folder.write("a.csv", "batch_id,comment\na,b\n");
    let state = |path: &str| {
        let metadata = Path::new(path).metadata().unwrap();
        (
            metadata.ino(),
            metadata.mtime_nsec(),
            fs::read(path).unwrap(),
        )
    };
    let before = state(&path);
    let running = verify_command(&server, &[&path])
        .args(["--parallel", "1"])
        .start_until_third_page();
    running.signal("INT");
    let message = running.ends_soon_with(130);
    assert!(message.contains("nothing was changed"), "{message}");
    // Also while it waits for standard input.
    let mut command = trayscan(&["verify", "-"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).start();
    child
        .stdin
        .as_mut()
        .unwrap()
        .write_all(b"batch_id\n")
        .unwrap();
    std::thread::sleep(std::time::Duration::from_millis(200));
    child.signal("TERM");
    assert_eq!(child.wait().code(), Some(143));
    assert_eq!(state(&path), before);
    assert_eq!(names(folder.0.path()), ["a.csv"]);
}

#[test]
fn an_empty_file_is_accepted_only_if_exported_empty() {
    let server = Server::start(&["--batches", "3"]);
    let folder = Folder::new();
    for name in [
        "a.xlsx",
        "a.parquet",
        "a.sqlite",
        "a.db",
        "a.csv",
        "a.tsv",
        "a.json",
        "a.ndjson.gz",
        "a.ndjson.zst",
        "a.csv.gz",
        "a.singer",
        "a",
    ] {
        let ended = verify(&[&folder.write(name, "")]);
        assert_eq!(ended.code, Some(7), "{name}: {ended:?}");
        assert!(ended.stderr.contains("cut short"), "{name}: {ended:?}");
    }
    let mut command = trayscan(&["verify", "-"]);
    command.output().expect(7);
    for name in ["a.ndjson", "a.jsonl"] {
        assert_eq!(verify(&[&folder.write(name, "")]).code, Some(0), "{name}");
    }
    let nothing = ["--where", "batch_id=nobody"];
    let bare = [&nothing[..], &["--no-header"]].concat();
    for (name, flags) in [("b.csv", &bare), ("b.tsv", &bare)] {
        let path = folder.export(&server, name, flags);
        assert_eq!(fs::read(&path).unwrap(), b"", "{name}");
        let manifest = folder.at(&format!("{name}.manifest"));
        assert_equal(&verify(&[&path, "--manifest", &manifest]), name);
        assert_eq!(verify(&[&path]).code, Some(7), "{name}");
    }
    // With a header, the export was not empty, so its content is lost.
    let path = folder.export(&server, "c.csv", &nothing);
    folder.write("c.csv", "");
    verify(&[&path, "--manifest", &folder.at("c.csv.manifest")]).expect(7);
}

#[test]
fn a_name_that_says_another_compression_gets_a_warning() {
    let server = Server::start(&["--batches", "40"]);
    let folder = Folder::new();
    let contents = COMPRESSIONS.map(|compression| {
        let path = folder.export(&server, &format!("a.csv{compression}"), &[]);
        fs::read(path).unwrap()
    });
    for (content, found) in contents.iter().zip(COMPRESSIONS) {
        for named in COMPRESSIONS {
            let path = folder.write(&format!("b.csv{named}"), content);
            let ended = verify(&[&path]).expect(0);
            let warned = ended.stderr.contains("other programs go by the name");
            assert_eq!(warned, named != found, "{named} {found}: {ended:?}");
        }
        let ended = verify(&[&folder.write("b", content)]).expect(0);
        assert!(!ended.stderr.contains("by its name"), "{ended:?}");
    }
}

#[test]
fn a_file_that_cannot_be_read_is_different_from_its_manifest() {
    let folder = Folder::new();
    let [path, manifest] = ["a.csv", "a.json"].map(|name| folder.at(name));
    let args = ["export", "--sandbox", "-o", &path, "--manifest", &manifest];
    run(&args).expect(0);
    // A table for people, without a header that tells more.
    let table = run(&["export", "--sandbox", "--limit", "5", "-f", "table"]).expect(0);
    folder.write("a.csv", &table.stdout);
    verify(&[&path]).expect(2);
    let ended = verify(&[&path, "--manifest", &manifest]).expect(7);
    assert!(ended.stderr.contains("the file was modified"), "{ended:?}");
    // The manifest says nothing about another file.
    let other = folder.write("b.csv", &table.stdout);
    verify(&[&other, "--manifest", &manifest]).expect(2);
}

#[test]
fn a_damaged_or_truncated_database_is_reported() {
    let server = Server::start(&["--batches", "400", "--page-size", "200"]);
    let folder = Folder::new();
    let path = folder.export(&server, "a.sqlite", &[]);
    assert_eq!(verify(&[&path]).code, Some(0));
    let whole = fs::read(&path).unwrap();
    let page_size = usize::from(u16::from_be_bytes([whole[16], whole[17]]));
    let damaged = |at: usize, bytes: &[u8]| {
        let mut damaged = whole.clone();
        damaged[at..at + bytes.len()].copy_from_slice(bytes);
        damaged
    };
    let mut cases: Vec<(String, Vec<u8>)> = [50, 100, page_size, 8 * page_size, whole.len() - 1]
        .iter()
        .map(|&length| (format!("cut at {length}"), whole[..length].to_vec()))
        .collect();
    let zeros = vec![0; page_size];
    for page in [1, 5, whole.len() / page_size - 1] {
        let bytes = damaged(page * page_size, &zeros);
        cases.push((format!("page {page}"), bytes));
    }
    cases.push(("schema".to_owned(), damaged(100, &zeros[..64])));
    cases.push(("page size".to_owned(), damaged(16, &[0x11, 0x11])));
    for (what, bytes) in cases {
        let path = folder.write("damaged.sqlite", bytes);
        let ended = verify(&[&path]);
        assert_eq!(ended.code, Some(7), "{what}: {ended:?}");
        let is_reported = ended.stderr.contains("damaged or cut short");
        assert!(is_reported, "{what}: {ended:?}");
    }
    // A valid database that is not an export.
    let other = folder.at("other.sqlite");
    let db = rusqlite::Connection::open(&other).unwrap();
    db.execute_batch("CREATE TABLE trays (id)").unwrap();
    drop(db);
    verify(&[&other]).expect(2);

    let archive = folder.at("archive.db");
    assert_eq!(run(&["sync", &archive, "--sandbox", "-q"]).code, Some(0));
    let bytes = fs::read(&archive).unwrap();
    let half = folder.write("half.db", &bytes[..bytes.len() / 2]);
    verify(&[&half]).expect(7);
}
