//! Exports from an archive: a part of it by dates, and one with damage that SQLite does not notice.

use std::collections::BTreeSet;
use std::fs;

use crate::archives::ArchiveFile;
use crate::fake::{Batch, FakeService};
use crate::harness::{Output, Server, trayscan};

fn export(archive: &ArchiveFile, args: &[&str]) -> Output {
    let path = archive.path.to_str().unwrap();
    trayscan(&[&["export", "-f", "ndjson", "--archive", path], args].concat()).output()
}

#[test]
fn a_few_batches_are_found_by_their_dates_in_any_spelling() {
    // Many more batches outside the range, so that the index is used.
    let others =
        (0..100).map(|number| Batch::small(&format!("o{number}")).created("2025-01-01T00:00:00Z"));
    let inside = [
        ("first", "2026-06-30T23:59:59Z"),
        ("fraction", "2026-06-30T23:59:59.999999999Z"),
        ("leap", "2026-06-30T23:59:60Z"),
        ("offset", "2026-07-01T00:00:00+00:00"),
        ("last", "2026-07-01T00:00:01.000Z"),
    ];
    let outside = [
        ("before", "2026-06-30T23:59:58.999Z"),
        ("after", "2026-07-01T00:00:01.001Z"),
    ];
    let dated = inside.iter().chain(&outside);
    let dated = dated.map(|(id, date)| Batch::small(id).created(date));
    // It may belong to any range.
    let undated = Batch::small("undated").created("soon");
    let batches: Vec<String> = others
        .chain(dated)
        .chain([undated])
        .map(|batch| batch.text())
        .collect();
    let service = FakeService::with(&batches);
    let archive = ArchiveFile::new();
    archive.complete(&service, &["--lenient"]);
    let found = |args: &[&str]| -> BTreeSet<String> {
        let exported = export(&archive, &[args, &["--lenient"]].concat()).expect(0);
        let id = |batch: serde_json::Value| batch["batch_id"].as_str().unwrap().to_owned();
        exported.json_lines().into_iter().map(id).collect()
    };
    let mut expected: BTreeSet<String> = inside.iter().map(|(id, _)| (*id).to_owned()).collect();
    expected.insert("undated".to_owned());
    let range = [
        "--start",
        "2026-06-30T23:59:59Z",
        "--end",
        "2026-07-01T00:00:01Z",
    ];
    assert_eq!(found(&range), expected);
    assert_eq!(
        found(&["--start", "2026-07-01T00:00:01Z"]),
        ["after", "last", "undated"].map(str::to_owned).into()
    );
    assert_eq!(found(&["--end", "2025-12"]).len(), 101);
    assert_eq!(found(&["--end", "2024"]), ["undated".to_owned()].into());
    assert_eq!(found(&[]).len(), 108);
}

/// The number of the page of the table that has this row, and the size of a page.
fn page_of(archive: &ArchiveFile, text: &str) -> (usize, usize) {
    let size = archive.one::<usize>("PRAGMA page_size");
    let bytes = fs::read(&archive.path).unwrap();
    let at = memchr::memmem::find(&bytes, text.as_bytes()).unwrap();
    (at / size, size)
}

#[test]
fn a_page_with_other_rows_is_noticed() {
    let server = Server::start(&[]);
    let archive = ArchiveFile::new();
    archive.complete(&server, &[]);
    let rows = archive.all::<String>("SELECT received FROM batches ORDER BY rowid");
    let whole = fs::read(&archive.path).unwrap();
    // A copy of an earlier page leads back to its rows, and of a later one skips some.
    for (from, to) in [(20, 200), (200, 20)] {
        let ((from, size), (to, _)) =
            (page_of(&archive, &rows[from]), page_of(&archive, &rows[to]));
        assert_ne!(from, to);
        let mut bytes = whole.clone();
        bytes.copy_within(from * size..(from + 1) * size, to * size);
        fs::write(&archive.path, bytes).unwrap();
        let ended = export(&archive, &[]).expect(2);
        assert!(ended.stderr.contains("reports damage"), "{}", ended.stderr);
        fs::write(&archive.path, &whole).unwrap();
    }
    export(&archive, &[]).expect(0);
}
