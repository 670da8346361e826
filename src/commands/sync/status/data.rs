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
        let mut failed = vec![RunOutcome::Failed, RunOutcome::Interrupted];
        // Nobody records that a run was killed until the next one begins.
        let is_in_use = archive.is_in_use();
        if !is_in_use {
            failed.push(RunOutcome::Running);
        }
        let ended = [&failed[..], &[RunOutcome::Complete]].concat();
        let runs = |outcomes: &[RunOutcome], most| -> Result<Vec<Run>, Failure> {
            let mut runs = archive.runs(outcomes, most)?;
            if !is_in_use {
                runs.iter_mut().for_each(Run::mark_killed);
            }
            Ok(runs)
        };
        Ok(Self {
            path: archive.path().to_owned(),
            owner: archive.owner()?,
            batches,
            vanished,
            months: archive.months()?,
            since: archive.since()?.second(),
            coverage: archive.coverage()?,
            runs: runs(&RunOutcome::ALL, RUNS)?,
            failed_runs: runs(&failed, RUNS)?,
            last_complete_run: runs(&[RunOutcome::Complete], 1)?.pop(),
            last_ended_run: runs(&ended, 1)?.pop(),
        })
    }
}
