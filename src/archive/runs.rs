//! The record of `sync` runs: when, what was requested, and the result.

use rusqlite::Row;
use serde::Serialize;

use super::database::{Archive, read_second};
use super::lock;
use crate::batch::range::{Range, written};
use crate::error::Failure;
use crate::text;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Default)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RunOutcome {
    /// It has not ended, or was killed.
    #[default]
    Running,
    Complete,
    Failed,
    Interrupted,
}

impl RunOutcome {
    pub(crate) const ALL: [Self; 4] = [
        Self::Running,
        Self::Complete,
        Self::Failed,
        Self::Interrupted,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Complete => "complete",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
        }
    }

    fn read(name: &str) -> Self {
        Self::ALL
            .into_iter()
            .find(|outcome| outcome.name() == name)
            .unwrap_or(Self::Running)
    }
}

/// A run and its results so far. As JSON, it is a part of the status.
#[derive(Clone, Debug, Serialize, Default)]
pub(crate) struct Run {
    #[serde(skip)]
    pub(crate) id: i64,
    pub(crate) started: String,
    pub(crate) ended: Option<String>,
    pub(crate) full: bool,
    pub(crate) range_start: Option<String>,
    pub(crate) range_end: Option<String>,
    pub(crate) version: Option<String>,
    pub(crate) requests: u64,
    pub(crate) added: u64,
    pub(crate) changed: u64,
    pub(crate) unchanged: u64,
    pub(crate) vanished: u64,
    pub(crate) outcome: RunOutcome,
    pub(crate) exit_code: Option<u8>,
    pub(crate) message: Option<String>,
}

impl Run {
    /// Sets the range to the first through the last second that is requested; the last one is `mark`.
    pub(super) fn set_range(&mut self, ranges: &[Range], mark: i64) {
        let start = ranges.first().and_then(|range| range.start);
        self.range_start = start.map(written);
        self.range_end = Some(written(mark));
    }

    /// Marks the run as killed if it has not ended.
    pub(crate) fn mark_killed(&mut self) {
        if self.outcome == RunOutcome::Running {
            self.outcome = RunOutcome::Interrupted;
            self.message = Some(KILLED.to_owned());
        }
    }

    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            id: row.get("run_id")?,
            started: row.get("started")?,
            ended: row.get("ended")?,
            full: row.get::<_, String>("kind")? == "full",
            range_start: row.get("range_start")?,
            range_end: row.get("range_end")?,
            version: row.get("version")?,
            requests: row.get("requests")?,
            added: row.get("added")?,
            changed: row.get("changed")?,
            unchanged: row.get("unchanged")?,
            vanished: row.get("vanished")?,
            outcome: RunOutcome::read(&row.get::<_, String>("outcome")?),
            exit_code: row.get("exit_code")?,
            message: row.get("message")?,
        })
    }
}

/// What is recorded of a run whose process was killed.
const KILLED: &str = "the process ended before the run did";

impl Archive {
    /// Returns whether a run is in progress.
    pub(crate) fn is_in_use(&self) -> bool {
        lock::is_held(self.path())
    }

    /// Records that a run begins, and that all earlier ones have ended.
    pub(crate) fn begin_run(&self, run: &mut Run) -> Result<(), Failure> {
        run.id = self.query(|db| {
            let sql =
                "UPDATE runs SET outcome = 'interrupted', message = ?1 WHERE outcome = 'running'";
            db.execute(sql, [KILLED])?;
            let kind = if run.full { "full" } else { "sync" };
            let sql = "INSERT INTO runs (started, kind, range_start, range_end, outcome)
                VALUES (?1, ?2, ?3, ?4, 'running')";
            db.execute(sql, (&run.started, kind, &run.range_start, &run.range_end))?;
            Ok(db.last_insert_rowid())
        })?;
        Ok(())
    }

    /// Records the progress of a run.
    pub(crate) fn update_run(&self, run: &Run) -> Result<(), Failure> {
        let sql = "UPDATE runs SET started = ?14, ended = ?2, range_start = ?3, range_end = ?4, version = ?5,
            requests = ?6, added = ?7, changed = ?8, unchanged = ?9, vanished = ?10, outcome = ?11,
            exit_code = ?12, message = ?13 WHERE run_id = ?1";
        let values = (
            run.id,
            &run.ended,
            &run.range_start,
            &run.range_end,
            &run.version,
            run.requests,
            run.added,
            run.changed,
            run.unchanged,
            run.vanished,
            run.outcome.name(),
            run.exit_code,
            &run.message,
            &run.started,
        );
        self.query(|db| db.execute(sql, values).map(drop))
    }

    /// Returns the latest second, up to `mark`, up to which a run was complete.
    pub(crate) fn last_mark(&self, mark: i64) -> Result<Option<i64>, Failure> {
        let sql = "SELECT max(range_end) FROM runs WHERE outcome = 'complete' AND range_end <= ?1";
        let last: Option<String> = self.value(sql, [written(mark)])?;
        Ok(last.as_deref().and_then(read_second))
    }

    /// Returns whether the latest run has finished.
    pub(crate) fn has_finished(&self) -> Result<bool, Failure> {
        let newest = self.runs(&RunOutcome::ALL, 1)?;
        Ok(newest.iter().all(|run| run.outcome == RunOutcome::Complete))
    }

    /// Returns the latest runs that ended like this, newest first.
    pub(crate) fn runs(&self, outcomes: &[RunOutcome], most: u32) -> Result<Vec<Run>, Failure> {
        let names = outcomes
            .iter()
            .map(|outcome| format!("'{}'", outcome.name()));
        let names = text::join(names, ", ");
        let sql =
            format!("SELECT * FROM runs WHERE outcome IN ({names}) ORDER BY run_id DESC LIMIT ?1");
        self.query(|db| db.prepare(&sql)?.query_map([most], Run::read)?.collect())
    }
}
