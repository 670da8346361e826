//! What `--status` reads from an archive.

use std::path::PathBuf;

use crate::archive::{Archive, Coverage, Owner, Run, RunOutcome};
use crate::error::Failure;

/// Maximum number of runs to show.
const RUNS: u32 = 10;

pub(super) struct Status {
    pub(super) path: PathBuf,
    pub(super) owner: Option<Owner>,
    pub(super) batches: u64,
    pub(super) vanished: u64,
    /// Batches created in each month, such as `2026-05`.
    pub(super) months: Vec<(String, u64)>,
    pub(super) since: Option<i64>,
    pub(super) coverage: Coverage,
    pub(super) runs: Vec<Run>,
    /// The latest runs that did not complete, also earlier than `runs`.
    pub(super) failed_runs: Vec<Run>,
    pub(super) last_complete_run: Option<Run>,
    /// The last run that is not in progress.
    pub(super) last_ended_run: Option<Run>,
}

impl Status {
    pub(super) fn read(archive: &Archive) -> Result<Self, Failure> {
        let (batches, vanished) = archive.count()?;
        let failed = [RunOutcome::Failed, RunOutcome::Interrupted];
        let ended = [RunOutcome::Complete, failed[0], failed[1]];
        Ok(Self {
            path: archive.path().to_owned(),
            owner: archive.owner()?,
            batches,
            vanished,
            months: archive.months()?,
            since: archive.since()?.second(),
            coverage: archive.coverage()?,
            runs: archive.runs(&RunOutcome::ALL, RUNS)?,
            failed_runs: archive.runs(&failed, RUNS)?,
            last_complete_run: archive.runs(&[RunOutcome::Complete], 1)?.pop(),
            last_ended_run: archive.runs(&ended, 1)?.pop(),
        })
    }
}
