//! Archives read with plain SQL, without any code of the program.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use rusqlite::types::FromSql;
use rusqlite::{Connection, OpenFlags};
use serde_json::Value;
use tempfile::TempDir;

use crate::export::texts;
use crate::files::names;
use crate::harness::{Output, Run, Server, Service, trayscan};

/// An archive in a temporary folder.
pub(crate) struct ArchiveFile {
    pub(crate) folder: TempDir,
    pub(crate) path: PathBuf,
}

impl ArchiveFile {
    pub(crate) fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("a.db");
        Self { folder, path }
    }

    /// Returns a `sync` command.
    pub(crate) fn command(&self, service: &impl Service, args: &[&str]) -> Run {
        let mut command = trayscan(&["sync"]);
        command.service(service);
        command.arg(&self.path).args(args);
        command
    }

    /// Runs `sync`, and asserts that it printed no secret.
    #[track_caller]
    pub(crate) fn sync(&self, service: &impl Service, args: &[&str]) -> Output {
        let ended = self.command(service, args).output();
        let [_, _, secret] = service.access();
        for printed in [&ended.stdout, &ended.stderr] {
            assert!(
                !printed.contains(&secret),
                "a secret was printed: {ended:?}"
            );
        }
        assert_eq!(ended.stdout, "", "{ended:?}");
        ended
    }

    /// Runs `sync`, which must succeed, and returns the number of added, changed and unchanged batches.
    #[track_caller]
    pub(crate) fn counts(&self, service: &impl Service, args: &[&str]) -> [u64; 3] {
        counts(&self.complete(service, args))
    }

    /// Runs `sync`, which must succeed.
    #[track_caller]
    pub(crate) fn complete(&self, service: &impl Service, args: &[&str]) -> Output {
        let ended = self.sync(service, args);
        assert_eq!(ended.code, Some(0), "{args:?}: {}", ended.stderr);
        ended
    }

    /// Runs `sync` without a service, for `--status` and `--changes`.
    #[track_caller]
    pub(crate) fn inspect(&self, args: &[&str]) -> Output {
        let mut command = trayscan(&["sync"]);
        let ended = command.arg(&self.path).args(args).output();
        assert_eq!(ended.code, Some(0), "{args:?}: {}", ended.stderr);
        ended
    }

    #[track_caller]
    pub(crate) fn status(&self) -> Value {
        self.inspect(&["--status", "-f", "json"]).json()
    }

    /// Returns the lines of `--changes` as change, batch, field, old and new.
    #[track_caller]
    pub(crate) fn changes(&self, args: &[&str]) -> Vec<[String; 5]> {
        let ended = self.inspect(&[&["--changes", "-f", "ndjson"], args].concat());
        let lines = ended.stdout.lines().map(|line| {
            let line: Value = serde_json::from_str(line).unwrap();
            ["change", "batch_id", "field", "old", "new"].map(|key| match &line[key] {
                Value::Null => "-".to_owned(),
                value => value.as_str().unwrap().to_owned(),
            })
        });
        lines.collect()
    }

    pub(crate) fn open(&self) -> Connection {
        open(&self.path)
    }

    pub(crate) fn one<T: FromSql>(&self, sql: &str) -> T {
        self.open().query_row(sql, [], |row| row.get(0)).unwrap()
    }

    pub(crate) fn all<T: FromSql>(&self, sql: &str) -> Vec<T> {
        let db = self.open();
        let mut rows = db.prepare(sql).unwrap();
        let rows = rows.query_map([], |row| row.get(0)).unwrap();
        rows.map(Result::unwrap).collect()
    }

    /// Returns every batch as received, by ID.
    pub(crate) fn received(&self) -> BTreeMap<String, String> {
        received(&self.path)
    }

    /// Asserts that the archive is intact, has no other files beside it, and contains exactly `expected`.
    #[track_caller]
    pub(crate) fn assert_holds(&self, expected: &BTreeMap<String, String>, what: &str) {
        assert_sound(&self.path, what);
        let found = self.received();
        assert_eq!(found.len(), expected.len(), "{what}");
        for (id, text) in expected {
            assert_eq!(found.get(id), Some(text), "{what}: {id}");
        }
        assert_eq!(self.names(), ["a.db"], "{what}");
    }

    pub(crate) fn names(&self) -> Vec<OsString> {
        names(self.folder.path())
    }

    /// Returns the bytes of the archive and its modification time.
    pub(crate) fn state(&self) -> (Vec<u8>, std::time::SystemTime) {
        let written = fs::metadata(&self.path).unwrap().modified().unwrap();
        (fs::read(&self.path).unwrap(), written)
    }
}

/// Opens an existing archive.
pub(crate) fn open(path: &Path) -> Connection {
    // An absolute path, so that SQLite does not give the name a special meaning.
    let path = path.canonicalize().unwrap();
    Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE).unwrap()
}

pub(crate) fn received(path: &Path) -> BTreeMap<String, String> {
    let db = open(path);
    let mut rows = db
        .prepare("SELECT batch_id, received FROM batches")
        .unwrap();
    let rows = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
    rows.unwrap().map(Result::unwrap).collect()
}

/// Asserts that the integrity checks of SQLite pass.
#[track_caller]
pub(crate) fn assert_sound(path: &Path, what: &str) {
    let db = open(path);
    for (check, good) in [("integrity_check", Some("ok")), ("foreign_key_check", None)] {
        let mut rows = db.prepare(&format!("PRAGMA {check}")).unwrap();
        let rows = rows.query_map([], |row| row.get(0)).unwrap();
        let found: Vec<String> = rows.map(Result::unwrap).collect();
        let good: Vec<String> = good.into_iter().map(String::from).collect();
        assert_eq!(found, good, "{what}: {check}");
    }
}

/// Returns all batches that `server` returns for `query`, by ID.
pub(crate) fn batches(server: &Server, query: &str) -> BTreeMap<String, String> {
    by_id(texts(server, query))
}

pub(crate) fn by_id(texts: Vec<String>) -> BTreeMap<String, String> {
    let named = texts.into_iter().map(|text| {
        let batch: Value = serde_json::from_str(&text).unwrap();
        (batch["batch_id"].as_str().unwrap().to_owned(), text)
    });
    named.collect()
}

/// Returns the added, changed and unchanged batches that the last line reports.
#[track_caller]
pub(crate) fn counts(ended: &Output) -> [u64; 3] {
    let last = ended.stderr.lines().last().unwrap_or_default();
    ["added", "changed", "unchanged"].map(|word| counted(last, word))
}

/// Returns the number before `word`.
#[track_caller]
pub(crate) fn counted(line: &str, word: &str) -> u64 {
    let words = line.split([' ', '(', ')']);
    let words: Vec<&str> = words.map(|word| word.trim_end_matches(',')).collect();
    let place = words.iter().position(|other| *other == word);
    let place = place.unwrap_or_else(|| panic!("no {word} in {line:?}"));
    words[place - 1].replace(',', "").parse().unwrap()
}
