//! Judges each crop on its newest step against its own past. `summary` and `report` share it.
//!
//! Read [`history`] first: it collects the batches of each crop, step by step. [`verdict`] has the rule that
//! calls a crop down or up, [`limits`] the reasons why a batch needs attention, and [`newest`] puts them
//! together for the newest step, the worst crop first.

pub(crate) mod history;
pub(crate) mod limits;
pub(crate) mod newest;
pub(crate) mod verdict;

pub(crate) use history::History;
pub(crate) use limits::{BatchValues, Limits, Reason};
pub(crate) use newest::{CropJudgement, MissedTarget, NewestStep, TargetState};
pub(crate) use verdict::{LEAST_CHANGE, MIN_BATCHES, Verdict, changed};
