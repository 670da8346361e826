//! `verify` of files with the right batches in a damaged or altered container: other programs would read
//! something else or refuse the file.

// One module per format with internal parts.
mod parquet;
mod workbook;

use std::fs;

use rusqlite::Connection;
use serde_json::json;
use tempfile::TempDir;

use crate::fake::{Answer, Batch, FakeService, page, token};
use crate::harness::{Output, export, run};

/// An export, and the same batches as ndjson.
struct Exported {
    folder: TempDir,
    name: String,
    bytes: Vec<u8>,
}

impl Exported {
    /// Exports three batches with comments that need escaping.
    fn new(name: &str, args: &[&str]) -> Self {
        let comments = ["=1+1", "plain, \"quoted\"\r\nlines", "'-2"];
        let batches: Vec<Batch> = (1..)
            .zip(comments)
            .map(|(number, comment)| {
                let link = format!("https://scan.example.com/analysis/{number}");
                Batch::new(&format!("b{number}"))
                    .with("analysis_link", json!(link))
                    .with("comment", json!(comment))
            })
            .collect();
        let folder = TempDir::new().unwrap();
        for (name, args) in [("whole.ndjson", &[][..]), (name, args)] {
            let answers = vec![Answer::ok(page(&batches, None))];
            let service = FakeService::answering(vec![token()], answers);
            let path = folder.path().join(name).to_str().unwrap().to_owned();
            export(&service, &[&["-o", &path], args].concat()).expect(0);
        }
        let bytes = fs::read(folder.path().join(name)).unwrap();
        let exported = Self {
            folder,
            name: name.to_owned(),
            bytes,
        };
        exported.assert_equal(&exported.bytes);
        exported
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// Verifies `bytes` in place of the export.
    fn verify(&self, bytes: &[u8]) -> [Output; 2] {
        let path = self.path(&format!("altered-{}", self.name));
        fs::write(&path, bytes).unwrap();
        let whole = self.path("whole.ndjson");
        [
            run(&["verify", &path]),
            run(&["verify", &path, "--against", &whole]),
        ]
    }

    #[track_caller]
    fn assert_equal(&self, bytes: &[u8]) {
        for ended in self.verify(bytes) {
            assert_eq!(ended.code, Some(0), "{ended:?}");
        }
    }

    /// Asserts that `bytes` is refused, both alone and compared with the batches that it appears to contain.
    #[track_caller]
    fn assert_refused(&self, what: &str, bytes: &[u8], why: &str) {
        assert_ne!(bytes, self.bytes, "{what} changes nothing");
        for ended in self.verify(bytes) {
            assert_eq!(ended.code, Some(7), "{what}: {ended:?}");
            assert!(
                ended.stderr.contains(why),
                "{what}: {why} is not in {ended:?}"
            );
        }
    }
}

impl Exported {
    /// Asserts that values as written by `--lenient` cause a warning alone, and a difference in a comparison.
    #[track_caller]
    fn assert_mistyped(&self, what: &str, bytes: &[u8], why: &str) {
        let codes = [Some(0), Some(7)];
        for (ended, code) in self.verify(bytes).iter().zip(codes) {
            assert_eq!(ended.code, code, "{what}: {ended:?}");
            assert!(
                ended.stderr.contains(why),
                "{what}: {why} is not in {ended:?}"
            );
        }
    }
}

/// Replaces the first `from` after `start`.
#[track_caller]
fn replaced(bytes: &[u8], start: usize, from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut places = bytes[start..].windows(from.len());
    let at = places.position(|window| window == from);
    let at = start + at.unwrap_or_else(|| panic!("no {}", String::from_utf8_lossy(from)));
    [&bytes[..at], to, &bytes[at + from.len()..]].concat()
}

/// Changes a database with SQL.
fn with_sql(path: &str, sql: &str) -> Vec<u8> {
    let db = Connection::open(path).unwrap();
    db.execute_batch(sql).unwrap();
    drop(db);
    fs::read(path).unwrap()
}

/// Changes a text in the index of a column, but not in the rows.
fn with_other_index(bytes: &[u8], text: &str) -> Vec<u8> {
    let size = usize::from(u16::from_be_bytes([bytes[16], bytes[17]]));
    let mut altered = bytes.to_vec();
    for page in altered.chunks_mut(size).filter(|page| page[0] == 0x0a) {
        let mut places = page.windows(text.len());
        if let Some(at) = places.position(|window| window == text.as_bytes()) {
            page[at + text.len() - 1] += 1;
            return altered;
        }
    }
    panic!("{text} is in no index");
}

#[test]
fn a_database_with_a_damaged_index_is_refused() {
    let export = Exported::new("a.sqlite", &[]);
    let damaged = with_other_index(&export.bytes, "2026-05-01T06:00:00Z");
    export.assert_refused("index", &damaged, "is damaged or cut short");
}

#[test]
fn an_index_of_only_some_batches_is_refused() {
    let export = Exported::new("a.sqlite", &[]);
    let path = export.path("altered.sqlite");
    let sql = "PRAGMA writable_schema = ON;
        UPDATE sqlite_schema SET sql = sql || ' WHERE warnings' WHERE name = 'batches_by_batch_creation_date'";
    fs::write(&path, &export.bytes).unwrap();
    let altered = with_sql(&path, sql);
    let db = Connection::open(&path).unwrap();
    let count = |sql: &str| db.query_row(sql, [], |row| row.get::<_, u64>(0)).unwrap();
    let wrong = count("SELECT count(*) FROM batches WHERE warnings");
    let right = count("SELECT count(*) FROM batches NOT INDEXED WHERE warnings");
    assert_ne!(wrong, right, "a query is wrong");
    let why = "the index `batches_by_batch_creation_date` has only some of the batches";
    export.assert_refused("index", &altered, why);
    // One that a user has added is no lie.
    fs::write(&path, &export.bytes).unwrap();
    let sql = "CREATE INDEX with_warnings ON batches (crop_type) WHERE warnings";
    export.assert_equal(&with_sql(&path, sql));
}

#[test]
fn batches_must_be_a_plain_table() {
    let export = Exported::new("a.sqlite", &[]);
    let path = export.path("altered.sqlite");
    fs::write(&path, &export.bytes).unwrap();
    let sql = "ALTER TABLE batches RENAME TO others; CREATE VIEW batches AS SELECT * FROM others";
    let view = with_sql(&path, sql);
    export.assert_refused("view", &view, "`batches` is a view, not a plain table");
    fs::write(&path, &export.bytes).unwrap();
    let sql = "ALTER TABLE batches ADD COLUMN more TEXT GENERATED ALWAYS AS ('x') VIRTUAL";
    let [_, compared] = export.verify(&with_sql(&path, sql));
    assert_eq!(compared.code, Some(7), "{compared:?}");
    let why = "has unknown columns: more";
    assert!(compared.stderr.contains(why), "{compared:?}");
}

#[test]
fn cells_of_a_database_have_the_types_of_their_columns() {
    let export = Exported::new("a.sqlite", &[]);
    let schema = |from: &str, to: &str| {
        format!(
            "PRAGMA writable_schema = ON;
            UPDATE sqlite_schema SET sql = replace(replace(sql, ') STRICT', ')'), '{from}', '{to}')
                WHERE name = 'batches';"
        )
    };
    for (column, from, to, cast, why) in [
        (
            "avg_germination_rate",
            "REAL",
            "TEXT",
            "TEXT",
            "is text, not a number",
        ),
        (
            "number_of_images",
            "INTEGER",
            "TEXT",
            "TEXT",
            "is text, not an integer",
        ),
        (
            "number_of_images",
            "INTEGER",
            "REAL",
            "REAL",
            "is a floating-point number",
        ),
        ("comment", "TEXT", "BLOB", "BLOB", "is a blob, not text"),
    ] {
        let path = export.path("altered.sqlite");
        fs::write(&path, &export.bytes).unwrap();
        let (from, to) = (format!("{column} {from}"), format!("{column} {to}"));
        with_sql(&path, &schema(&from, &to));
        let sql = format!("UPDATE batches SET {column} = CAST({column} AS {cast})");
        let altered = with_sql(&path, &sql);
        export.assert_refused(column, &altered, why);
    }
    let path = export.path("altered.sqlite");
    fs::write(&path, &export.bytes).unwrap();
    let altered = with_sql(&path, "UPDATE batches SET warnings = 2");
    export.assert_refused("boolean", &altered, "`warnings` is an integer, not 0 or 1");
}

#[test]
fn an_archive_is_checked_as_sql_queries_see_it() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("a.db").to_str().unwrap().to_owned();
    assert_eq!(run(&["sync", &path, "--sandbox", "-q"]).code, Some(0));
    let whole = fs::read(&path).unwrap();
    assert_eq!(run(&["verify", &path]).code, Some(0));
    let export = folder.path().join("a.ndjson").to_str().unwrap().to_owned();
    run(&["export", "--archive", &path, "-o", &export]).expect(0);
    run(&["verify", &export, "--archive", &path]).expect(0);
    let refused = |why: &str| {
        let ended = run(&["verify", &path]).expect(7);
        assert!(ended.stderr.contains(why), "{ended:?}");
    };
    fs::write(&path, with_other_index(&whole, "Basil")).unwrap();
    refused("is damaged or cut short");
    for (set, column) in [
        ("avg_germination_rate = 99.5", "avg_germination_rate"),
        ("comment = 'other'", "comment"),
        ("warnings = 1 - warnings", "warnings"),
        ("crop_type = NULL", "crop_type"),
    ] {
        fs::write(&path, &whole).unwrap();
        with_sql(&path, &format!("UPDATE batches SET {set} WHERE rowid = 1"));
        let why = format!("the column `{column}` differs from the batch as received");
        refused(&why);
        // Also as the other side.
        let ended = run(&["verify", &export, "--archive", &path]).expect(7);
        assert!(ended.stderr.contains(&why), "{ended:?}");
    }
    fs::write(&path, &whole).unwrap();
    let sql =
        "DROP VIEW present; CREATE VIEW present AS SELECT 'Leek' AS crop_type, * FROM batches";
    with_sql(&path, sql);
    refused("the view `present` of");
    // So can a table, whose batches are not those of the archive.
    fs::write(&path, &whole).unwrap();
    let sql = "DROP VIEW present; CREATE TABLE Present AS SELECT 'Leek' AS crop_type";
    with_sql(&path, sql);
    refused("the view `present` of");
    // Views of one's own are fine.
    fs::write(&path, &whole).unwrap();
    with_sql(&path, "CREATE VIEW mine AS SELECT * FROM batches");
    run(&["verify", &path]).expect(0);
}

#[test]
fn cells_for_excel_keep_their_apostrophe() {
    let export = Exported::new("a.csv", &["--excel"]);
    let bare = replaced(&export.bytes, 0, b"'=1+1", b"=1+1");
    export.assert_refused(
        "apostrophe",
        &bare,
        "line 2: `comment` would be interpreted as a formula",
    );
    // Without the byte order mark, it is a plain CSV file, and an apostrophe is just text.
    let plain = Exported::new("a.csv", &[]);
    plain.assert_equal(&replaced(&plain.bytes, 0, b"b1", b"b1"));
}

#[test]
fn a_comma_in_a_date_for_excel_is_text_if_numbers_have_a_point() {
    let date = b"2026-05-01 06:00:00";
    for (args, separator, is_equal) in [
        (&["--excel"][..], '.', true),
        (&["--excel"], ',', false),
        (&["--excel", "--decimal-comma"], ',', true),
    ] {
        let export = Exported::new("a.csv", args);
        let cell = format!("\"2026-05-01 06:00:00{separator}0\"");
        let altered = replaced(&export.bytes, 0, date, cell.as_bytes());
        let [_, compared] = export.verify(&altered);
        let code = if is_equal { 0 } else { 7 };
        assert_eq!(compared.code, Some(code), "{args:?}: {compared:?}");
    }
}

#[test]
fn the_name_says_what_a_file_is() {
    let folder = TempDir::new().unwrap();
    let formats = ["csv", "ndjson", "xlsx", "parquet", "sqlite"];
    for format in formats {
        let export = Exported::new(&format!("a.{format}"), &[]);
        for other in formats.iter().filter(|other| **other != format) {
            let path = folder.path().join(format!("b.{other}"));
            fs::write(&path, &export.bytes).unwrap();
            let ended = run(&["verify", path.to_str().unwrap()]);
            assert_ne!(ended.code, Some(0), "{format} as {other}: {ended:?}");
        }
        // Without a known name, the content decides.
        let path = folder.path().join("backup");
        fs::write(&path, &export.bytes).unwrap();
        run(&["verify", path.to_str().unwrap()]).expect(0);
    }
    let export = Exported::new("a.parquet", &[]);
    let path = folder.path().join("a.xlsx");
    fs::write(&path, &export.bytes).unwrap();
    let ended = run(&["verify", path.to_str().unwrap()]).expect(7);
    let why = "its name has the extension `.xlsx`, but it is a Parquet file";
    assert!(ended.stderr.contains(why), "{ended:?}");
}

#[test]
fn a_frame_to_skip_may_come_first() {
    let export = Exported::new("a.ndjson.zst", &[]);
    let frame = [0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 1, 2, 3, 4];
    let padded = [&frame[..], &export.bytes].concat();
    export.assert_equal(&padded);
}

#[test]
fn ambiguous_lines_are_refused() {
    let export = Exported::new("a.csv", &[]);
    let at = |from: &str, to: &str| replaced(&export.bytes, 0, from.as_bytes(), to.as_bytes());
    for (what, bytes, why) in [
        (
            "empty line",
            at("\nb2,", "\n\nb2,"),
            "line 3: the line is empty",
        ),
        (
            "empty last line",
            [&export.bytes[..], b"\n"].concat(),
            "the line is empty",
        ),
        ("CR LF", at("\nb2,", "\r\nb2,"), "LF and CR LF are mixed"),
        (
            "CR",
            at("\nb2,", "\rb2,"),
            "line 2: a carriage return has no line feed after it",
        ),
        (
            "quotes",
            at("\nb2,", "\n\"b\"2,"),
            "line 3: text follows the closing quote",
        ),
        (
            "blank",
            at("lines\",", "lines\" ,"),
            "text follows the closing quote",
        ),
    ] {
        export.assert_refused(what, &bytes, why);
    }
    let name = at(",Tray,", ",Tr\"ay\",");
    export.assert_refused(
        "bare",
        &name,
        "line 2: a quote appears inside an unquoted cell",
    );
    // A file with quotes around every cell is accepted.
    export.assert_equal(&at("\nb2,Tray,", "\n\"b2\",\"Tray\","));
}

#[test]
fn decimals_use_one_separator() {
    let export = Exported::new("a.csv", &["--decimal-comma"]);
    let last = export
        .bytes
        .windows(5)
        .rposition(|window| window == b"87,50");
    let point = replaced(&export.bytes, last.unwrap(), b"87,50", b"87.50");
    export.assert_mistyped(
        "point",
        &point,
        "`avg_germination_rate` has a decimal point",
    );
}
