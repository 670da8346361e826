//! Figures over many batches: `summary` in the terminal and `report` as an HTML page.
//!
//! Read [`statistics`] first: it computes the figures, exactly. [`summary`] writes them as a table, JSON or
//! CSV; [`report`] draws them on one page. [`targets`] are the limits that a user sets for each crop, and
//! [`span`] says how much of a week or month is known.
//!
//! Batches arrive through `pipeline`. Flags, output files and messages are left to `commands`, and the
//! config file to `config`.

pub(crate) mod judgement;
pub(crate) mod span;
pub(crate) mod statistics;
pub(crate) mod targets;

pub(crate) mod report;
pub(crate) mod summary;

pub(crate) use span::KnownSpan;
pub(crate) use targets::{TARGET_KEYS, Target, Targets};
