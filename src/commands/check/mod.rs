//! `check`: tests the settings, the connection and the credentials, step by step.
//!
//! Start with `run`. The questions of `--probe` are in `probe` of the crate.

mod run;

// The results, as text or JSON.
mod report;

pub(super) use report::CheckResults;
pub(super) use run::{check_service, run};
