//! Stores received batches: new, changed, or already known.

use std::collections::HashSet;

use rusqlite::types::Null;
use rusqlite::{OptionalExtension as _, Statement};

use super::database::Archive;
use super::schema;
use crate::batch::dedup::Arrival;
use crate::batch::{BATCH_ID, Batch, COLUMNS, FieldType, Timestamp};
use crate::error::Failure;
use crate::text;

/// The result of storing a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stored {
    Added,
    Changed,
    Unchanged,
}

/// Stores batches, in a transaction that [`Archive::begin`] starts.
pub(crate) struct BatchStore<'a> {
    archive: &'a Archive,
    run_id: i64,
    insert: Statement<'a>,
    find: Statement<'a>,
    replace: Statement<'a>,
    note: Statement<'a>,
    set_vanished: Statement<'a>,
    /// The archive was empty: most batches are new to it.
    all_new: bool,
    /// Whether batches can be found by their ID. Otherwise, all of them are from this run.
    has_key: bool,
    sightings: Option<Sightings>,
}

/// The rows that a run has seen, one bit each.
#[derive(Default)]
pub(crate) struct Sightings {
    words: Vec<u64>,
}

impl Sightings {
    fn add(&mut self, row: i64) {
        let Ok(row) = usize::try_from(row) else {
            return;
        };
        let word = row / 64;
        if word >= self.words.len() {
            self.words.resize(word + 1, 0);
        }
        self.words[word] |= 1 << (row % 64);
    }

    fn has(&self, row: i64) -> bool {
        let word = usize::try_from(row / 64)
            .ok()
            .and_then(|word| self.words.get(word));
        word.is_some_and(|word| word >> (row % 64) & 1 == 1)
    }
}

/// Columns of the table after the fields of a batch.
const OWN: [&str; 4] = ["received", "first_seen", "last_changed", "vanished"];

impl<'a> BatchStore<'a> {
    /// Prepares to store the batches of run `run_id`; with `sightings`, records which ones it has seen.
    pub(crate) fn new(
        archive: &'a Archive,
        run_id: i64,
        sightings: Option<Sightings>,
    ) -> Result<Self, Failure> {
        let all_new = archive.is_empty()?;
        archive.query(|db| {
            let mut has_key = schema::has_key(db)?;
            if !all_new && !has_key {
                // The first run did not finish.
                archive.add_key()?;
                has_key = true;
            }
            let names = COLUMNS.map(|column| column.name);
            let parameters = (1..=names.len() + OWN.len()).map(|number| format!("?{number}"));
            let insert = format!(
                "INSERT INTO batches ({}, {}) VALUES ({}) ON CONFLICT DO NOTHING",
                names.join(", "),
                OWN.join(", "),
                text::join(parameters, ", ")
            );
            let fields = names.iter().zip(1..).skip(1);
            let sets = fields.map(|(name, number)| format!("{name} = ?{number}"));
            let replace = format!(
                "UPDATE batches SET {}, received = ?19, last_changed = ?20 WHERE batch_id = ?1",
                text::join(sets, ", ")
            );
            let find = "SELECT rowid, received, vanished IS NOT NULL FROM batches WHERE batch_id = ?1";
            let note = "INSERT INTO changes (batch_id, noticed, kind, received, run_id) VALUES (?1, ?2, ?3, ?4, ?5)";
            Ok(Self {
                archive,
                run_id,
                insert: db.prepare(&insert)?,
                find: db.prepare(find)?,
                replace: db.prepare(&replace)?,
                note: db.prepare(note)?,
                set_vanished: db.prepare("UPDATE batches SET vanished = ?2 WHERE rowid = ?1")?,
                all_new,
                has_key,
                sightings,
            })
        })
    }

    /// Stores `batch`, received at `now`; the old version is kept in the history. `arrival` tells whether it
    /// is new to this run.
    pub(crate) fn put(
        &mut self,
        batch: &Batch,
        arrival: Arrival,
        now: &str,
    ) -> Result<Stored, Failure> {
        self.archive.query(|_| self.try_put(batch, arrival, now))
    }

    fn try_put(&mut self, batch: &Batch, arrival: Arrival, now: &str) -> rusqlite::Result<Stored> {
        if self.all_new && arrival == Arrival::New && self.insert(batch, now)? {
            return Ok(Stored::Added);
        }
        if !self.has_key {
            self.archive.add_key()?;
            self.has_key = true;
        }
        let id = batch.id();
        let known = self
            .find
            .query_row([&*id], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
        let known: Option<(i64, String, bool)> = known.optional()?;
        let Some((row, received, is_vanished)) = known else {
            let added = usize::from(self.insert(batch, now)?);
            return expect_one(added).map(|()| Stored::Added);
        };
        if let Some(sightings) = &mut self.sightings {
            sightings.add(row);
        }
        if is_vanished {
            self.note
                .execute((&*id, now, "returned", &received, self.run_id))?;
            self.set_vanished.execute((row, Null))?;
        }
        if is_same(batch, &received) {
            return Ok(if is_vanished {
                Stored::Changed
            } else {
                Stored::Unchanged
            });
        }
        self.note
            .execute((&*id, now, "changed", &received, self.run_id))?;
        bind_fields(&mut self.replace, batch)?;
        self.replace.raw_bind_parameter(19, batch.text())?;
        self.replace.raw_bind_parameter(20, now)?;
        expect_one(self.replace.raw_execute()?)?;
        Ok(Stored::Changed)
    }

    /// Adds `batch`; returns false if its ID exists.
    fn insert(&mut self, batch: &Batch, now: &str) -> rusqlite::Result<bool> {
        let insert = &mut self.insert;
        bind_fields(insert, batch)?;
        insert.raw_bind_parameter(19, batch.text())?;
        insert.raw_bind_parameter(20, now)?;
        insert.raw_bind_parameter(21, now)?;
        insert.raw_bind_parameter(22, Null)?;
        let is_added = insert.raw_execute()? == 1;
        if let Some(sightings) = self.sightings.as_mut().filter(|_| is_added) {
            sightings.add(self.archive.db.last_insert_rowid());
        }
        Ok(is_added)
    }

    /// Returns the creation times of the batches that this run has not seen, if known.
    pub(crate) fn unseen_seconds(&self) -> Result<Vec<i64>, Failure> {
        self.archive.query(|db| {
            let sql = "SELECT batch_creation_date FROM batches WHERE rowid = ?1";
            let mut find = db.prepare(sql)?;
            let mut seconds = Vec::new();
            for row in self.unseen()? {
                let created: Option<String> = find.query_row([row], |row| row.get(0))?;
                let created = created.as_deref().and_then(Timestamp::parse);
                seconds.extend(created.map(|created| created.second));
            }
            Ok(seconds)
        })
    }

    /// Returns whether there are batches that this run has not seen, except those known to have vanished.
    pub(crate) fn has_unseen(&self) -> Result<bool, Failure> {
        self.archive.query(|_| Ok(!self.unseen()?.is_empty()))
    }

    /// Returns the rows that this run has not seen, except those known to have vanished.
    fn unseen(&self) -> rusqlite::Result<Vec<i64>> {
        let Some(sightings) = &self.sightings else {
            return Ok(Vec::new());
        };
        let rows = |sql: &str| -> rusqlite::Result<Vec<i64>> {
            let mut rows = self.archive.db.prepare(sql)?;
            let rows = rows.query_map([], |row| row.get(0))?;
            rows.filter(|row| row.as_ref().map_or(true, |row| !sightings.has(*row)))
                .collect()
        };
        // Two steps, because indexes cover both, and the table is many times larger.
        let mut unseen = rows("SELECT rowid FROM batches")?;
        let known = rows("SELECT rowid FROM batches WHERE vanished IS NOT NULL")?;
        let known: HashSet<i64> = known.into_iter().collect();
        unseen.retain(|row| !known.contains(row));
        Ok(unseen)
    }

    /// Marks all batches that this run has not seen as vanished at `now`; returns their number. Only valid
    /// once all batches of the service were seen.
    pub(crate) fn mark_vanished(&mut self, now: &str) -> Result<u64, Failure> {
        self.archive.query(|db| {
            let sql = "SELECT batch_id, received FROM batches WHERE rowid = ?1";
            let mut find = db.prepare(sql)?;
            let mut vanished = 0;
            for row in self.unseen()? {
                let (id, received): (String, String) =
                    find.query_row([row], |row| Ok((row.get(0)?, row.get(1)?)))?;
                self.note
                    .execute((id, now, "vanished", received, self.run_id))?;
                self.set_vanished.execute((row, now))?;
                vanished += 1;
            }
            Ok(vanished)
        })
    }
}

/// Fails unless one row was written: a trigger may have kept it out.
fn expect_one(rows: usize) -> rusqlite::Result<()> {
    match rows {
        1 => Ok(()),
        _ => Err(rusqlite::Error::StatementChangedRows(rows)),
    }
}

/// Returns whether `batch` has the same content as `received`, regardless of formatting.
fn is_same(batch: &Batch, received: &str) -> bool {
    batch.text() == received
        || Batch::read(received)
            .batch
            .is_some_and(|known| known.canonical() == batch.canonical())
}

/// Binds the fields of `batch` in the order of the interface. Values that do not fit their column are kept
/// only in `received`.
fn bind_fields(statement: &mut Statement<'_>, batch: &Batch) -> rusqlite::Result<()> {
    for (place, column) in COLUMNS.iter().enumerate() {
        let value = batch.typed(place);
        let text = value.as_deref();
        let place = place + 1;
        match column.kind {
            FieldType::Text | FieldType::Date => statement.raw_bind_parameter(place, text),
            FieldType::Integer => {
                let number = text.and_then(|text| text.parse::<i64>().ok());
                statement.raw_bind_parameter(place, number)
            }
            FieldType::Decimal => {
                let number = text.and_then(|text| text.parse::<f64>().ok());
                statement.raw_bind_parameter(place, number)
            }
            FieldType::Boolean => {
                statement.raw_bind_parameter(place, text.map(|text| text == "true"))
            }
        }?;
    }
    // Every batch has an ID, even if it is invalid.
    statement.raw_bind_parameter(BATCH_ID + 1, batch.id())
}
