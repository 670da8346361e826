//! The archive: a first run compared with a minimal program that inserts the same rows, and a run with nothing new.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};
use tempfile::TempDir;

use crate::programs::{self, Run};
use crate::server::{Server, TRAYSCAN};
use crate::setup::Setup;
use crate::table::{Goal, Line};

const BATCHES: usize = 1_000_000;
/// Few, because each takes many seconds.
const ROUNDS: usize = 3;
const MEBIBYTE: f64 = 1024.0 * 1024.0;

pub(crate) fn sync(setup: &Setup) -> Vec<Line> {
    let server = setup.server(BATCHES, &[]);
    // On a disk, because commits must reach it.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let archive = fresh(&folder, "archive.db");
    let watched = programs::watch(&mut command(setup, &server, &archive));
    let table = Table::read(&archive);
    assert_eq!(table.rows.len(), BATCHES);
    let rounds = programs::interleave(
        ROUNDS,
        [
            &mut || {
                let archive = fresh(&folder, "archive.db");
                programs::run(&mut command(setup, &server, &archive))
            },
            &mut || table.insert(&fresh(&folder, "bare.db")),
        ],
    );
    let measured = format!("{} against {}", rounds.wall(0), rounds.wall(1));
    let goal = Goal::at_most(1.5, 1.0, "x");
    let first = Line::judged(
        "1,000,000 synchronised, against a bare program that inserts the rows",
        rounds.ratio(0, 1),
        goal,
        &measured,
    );
    let peak = watched.peak.map(|peak| peak as f64 / MEBIBYTE);
    let goal = Goal::at_most(128.0, 64.0, " MiB");
    let work = "memory of that";
    let memory = match peak {
        Some(peak) => Line::judged(work, peak, goal, "4 workers"),
        None => Line::missing(work, goal, "it is not told here"),
    };
    vec![first, memory, nothing_new(setup, &server, &archive)]
}

/// Compares runs with nothing new on a large and on a small archive.
fn nothing_new(setup: &Setup, server: &Server, archive: &Path) -> Line {
    let small = archive.with_file_name("small.db");
    let few = setup.server(1000, &[]);
    programs::run(&mut command(setup, &few, &small));
    let rounds = programs::interleave(
        9,
        [
            &mut || programs::run(&mut command(setup, server, archive)),
            &mut || programs::run(&mut command(setup, &few, &small)),
        ],
    );
    Line::judged(
        "nothing new over 1,000,000, against nothing new over 1,000",
        rounds.ratio(0, 1),
        Goal::at_most(1.5, 1.1, "x"),
        &format!("{} against {}", rounds.wall(0), rounds.wall(1)),
    )
}

fn command(setup: &Setup, server: &Server, archive: &Path) -> Command {
    let mut command = Setup::with_access(setup.command(TRAYSCAN), server);
    command.args(["sync", "-q"]).arg(archive);
    command
}

fn fresh(folder: &TempDir, name: &str) -> PathBuf {
    let path = folder.path().join(name);
    if path.exists() {
        fs::remove_file(&path).unwrap();
    }
    path
}

/// The rows of the batches table, and the definitions of the table and its indexes.
struct Table {
    definition: String,
    indexes: Vec<String>,
    rows: Vec<Vec<Value>>,
}

impl Table {
    fn read(archive: &Path) -> Self {
        let db = Connection::open(archive).unwrap();
        let definitions = |kind: &str| -> Vec<String> {
            let sql = "SELECT sql FROM sqlite_master WHERE type = ?1 AND tbl_name = 'batches' AND sql IS NOT NULL";
            let mut found = db.prepare(sql).unwrap();
            let found = found.query_map([kind], |row| row.get(0)).unwrap();
            found.map(Result::unwrap).collect()
        };
        let mut select = db.prepare("SELECT * FROM batches ORDER BY rowid").unwrap();
        let columns = select.column_count();
        let rows = select
            .query_map([], |row| {
                (0..columns).map(|column| row.get(column)).collect()
            })
            .unwrap();
        Self {
            definition: definitions("table").remove(0),
            indexes: definitions("index"),
            rows: rows.map(Result::unwrap).collect(),
        }
    }

    /// Inserts all rows with one statement in one transaction, and creates the indexes.
    fn insert(&self, path: &Path) -> Run {
        let started = Instant::now();
        let db = Connection::open(path).unwrap();
        db.execute_batch(&self.definition).unwrap();
        db.execute_batch("BEGIN").unwrap();
        let places = vec!["?"; self.rows[0].len()].join(", ");
        let sql = format!("INSERT INTO batches VALUES ({places})");
        let mut insert = db.prepare(&sql).unwrap();
        for row in &self.rows {
            insert.execute(params_from_iter(row)).unwrap();
        }
        db.execute_batch("COMMIT").unwrap();
        for index in &self.indexes {
            db.execute_batch(index).unwrap();
        }
        drop(insert);
        drop(db);
        Run {
            wall: started.elapsed(),
            ..Run::default()
        }
    }
}
