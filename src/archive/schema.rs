//! The schema of an archive: tables, views and indexes, for users as well as for trayscan.

use std::fmt::Write as _;

use rusqlite::Connection;

use crate::batch::COLUMNS;
use crate::formats::sqlite::column_definition;
use crate::storage::sqlite::ARCHIVE_ID;

/// Increased when older versions of trayscan would misread what newer ones write. An archive has this version
/// until its key exists: older versions would store batches twice.
pub(super) const VERSION: u32 = 2;
/// The version of an archive that has its key.
const VERSION_WITH_KEY: u32 = 1;

/// The history of the batches, the runs, and the coverage.
const TABLES: &str = "
CREATE TABLE changes (
    change_id INTEGER PRIMARY KEY,
    batch_id TEXT NOT NULL,
    noticed TEXT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('changed', 'vanished', 'returned')),
    -- The earlier version, as received.
    received TEXT NOT NULL,
    run_id INTEGER NOT NULL REFERENCES runs
) STRICT;

CREATE TABLE runs (
    run_id INTEGER PRIMARY KEY,
    started TEXT NOT NULL,
    ended TEXT,
    kind TEXT NOT NULL CHECK (kind IN ('sync', 'full')),
    -- NULL: everything up to range_end.
    range_start TEXT,
    range_end TEXT,
    version TEXT,
    requests INTEGER NOT NULL DEFAULT 0,
    added INTEGER NOT NULL DEFAULT 0,
    changed INTEGER NOT NULL DEFAULT 0,
    unchanged INTEGER NOT NULL DEFAULT 0,
    vanished INTEGER NOT NULL DEFAULT 0,
    outcome TEXT NOT NULL CHECK (outcome IN ('running', 'complete', 'failed', 'interrupted')),
    exit_code INTEGER,
    message TEXT
) STRICT;

-- What is known to be complete, by the dates that the service was asked for.
CREATE TABLE coverage (
    -- NULL: from the beginning.
    covered_from TEXT,
    covered_through TEXT NOT NULL
) STRICT;

CREATE TABLE about (
    key TEXT PRIMARY KEY NOT NULL,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
";

const STATISTICS: &str = "
    count(*) AS batches,
    sum(number_of_images) AS images,
    round(avg(avg_germination_rate), 2) AS mean_germination_rate,
    round(avg(avg_usable_seedling_rate), 2) AS mean_usable_seedling_rate,
    round(avg(avg_coefficient_of_variation), 2) AS mean_coefficient_of_variation,
    sum(warnings) AS with_warnings";

/// IDs are random: updating their index row by row would change another page for each.
const KEY: &str = "CREATE UNIQUE INDEX batches_by_batch_id ON batches (batch_id)";

/// Created with the tables: new rows come last in them, or not at all.
const EARLY_INDEXES: [(&str, &str); 3] = [
    ("batches_by_last_changed", "batches (last_changed)"),
    (
        "batches_vanished",
        "batches (vanished) WHERE vanished IS NOT NULL",
    ),
    ("changes_by_batch", "changes (batch_id)"),
];

/// Created after the first complete run: that is faster than updating them row by row.
const LATE_INDEXES: [(&str, &str); 2] = [
    ("batches_by_creation_date", "batches (batch_creation_date)"),
    ("batches_by_crop_type", "batches (crop_type)"),
];

/// Creates all tables and views of a new archive, without its key.
pub(super) fn create(db: &Connection) -> rusqlite::Result<()> {
    db.pragma_update(None, "application_id", ARCHIVE_ID)?;
    db.pragma_update(None, "user_version", VERSION)?;
    db.execute_batch(&batches_table())?;
    db.execute_batch(TABLES)?;
    add_indexes(db, &EARLY_INDEXES)?;
    db.execute_batch(&views())
}

/// Returns whether batches can be found by their ID.
pub(super) fn has_key(db: &Connection) -> rusqlite::Result<bool> {
    let version: u32 = db.pragma_query_value(None, "user_version", |row| row.get(0))?;
    Ok(version == VERSION_WITH_KEY)
}

/// Returns whether batches can be found by their creation date. The first run creates the index at its end.
pub(super) fn has_date_index(db: &Connection) -> rusqlite::Result<bool> {
    let sql = "SELECT count(*) FROM sqlite_schema WHERE type = 'index' AND name = ?1";
    db.query_row(sql, [LATE_INDEXES[0].0], |row| row.get(0))
}

/// Creates the key, if it is missing.
pub(super) fn create_key(db: &Connection) -> rusqlite::Result<()> {
    if has_key(db)? {
        return Ok(());
    }
    // There may be a transaction already.
    db.execute_batch("SAVEPOINT key")?;
    let created = db.execute_batch(&format!(
        "{KEY}; PRAGMA user_version = {VERSION_WITH_KEY}; RELEASE key"
    ));
    if created.is_err() {
        // Some errors have ended the whole transaction.
        let _ = db.execute_batch("ROLLBACK TO key; RELEASE key");
    }
    created
}

/// Creates the key and the indexes that are missing.
pub(super) fn create_indexes(db: &Connection) -> rusqlite::Result<()> {
    create_key(db)?;
    add_indexes(db, &LATE_INDEXES)?;
    // Archives of older versions may lack them.
    add_indexes(db, &EARLY_INDEXES)
}

fn add_indexes(db: &Connection, indexes: &[(&str, &str)]) -> rusqlite::Result<()> {
    for (name, rows) in indexes {
        db.execute_batch(&format!("CREATE INDEX IF NOT EXISTS {name} ON {rows}"))?;
    }
    Ok(())
}

fn batches_table() -> String {
    let mut sql = String::from("CREATE TABLE batches (\n");
    for column in 0..COLUMNS.len() {
        // Writing to a string cannot fail.
        let _ = writeln!(sql, "    {},", column_definition(column));
    }
    sql.push_str(
        "    -- The batch exactly as the service sent it.
    received TEXT NOT NULL,
    first_seen TEXT NOT NULL,
    last_changed TEXT NOT NULL,
    -- When the service no longer had it; NULL as long as it has.
    vanished TEXT
) STRICT;",
    );
    sql
}

/// Creates the views. `verify` compares them with these: a change must replace those of existing archives.
fn views() -> String {
    let names = COLUMNS.map(|column| column.name).join(", ");
    format!(
        "
-- What the service has, without the archive's own columns.
CREATE VIEW present AS
    SELECT {names} FROM batches WHERE vanished IS NULL;

CREATE VIEW by_crop AS
    SELECT crop_type, {STATISTICS} FROM present
    GROUP BY crop_type ORDER BY crop_type;

CREATE VIEW by_crop_and_month AS
    SELECT substr(batch_creation_date, 1, 7) AS month, crop_type, {STATISTICS} FROM present
    GROUP BY month, crop_type ORDER BY month, crop_type;

-- A week is named by its Monday. Only the day is read, because SQLite knows no leap seconds.
CREATE VIEW by_crop_and_week AS
    SELECT date(substr(batch_creation_date, 1, 10), 'weekday 0', '-6 days') AS week, crop_type, {STATISTICS} FROM present
    GROUP BY week, crop_type ORDER BY week, crop_type;

CREATE VIEW with_warnings AS
    SELECT batch_creation_date, batch_name, crop_type, avg_germination_rate, avg_usable_seedling_rate,
        scanned_by_email, comment, analysis_link, batch_id
    FROM present WHERE warnings ORDER BY batch_creation_date DESC;

-- What is not known to be complete, between the first and the last that is.
CREATE VIEW gaps AS
    SELECT * FROM (
        SELECT covered_through AS gap_from,
            lead(covered_from) OVER (ORDER BY covered_through) AS gap_through
        FROM coverage
    ) WHERE gap_through IS NOT NULL;
"
    )
}
