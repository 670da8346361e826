//! Figures over many batches: what `summary` shows in the terminal and `report` on a page.
//!
//! Read `groups.rs` first. [`Groups`] is a sink of the pipeline: it adds each batch to the [`Figures`] of its
//! [`Key`](key::Key). A [`Period`] is a day, ISO week or month, for keys and for series over time.
//!
//! All arithmetic is exact: values are decimals, and only the output is rounded, once ([`two_digits`]). Memory
//! grows with the number of groups and of *distinct* values, not of batches. Results do not depend on the
//! order of the batches. How figures look is left to `summary` and `report`.

// From a batch to its group.
pub(crate) mod groups;
pub(crate) mod key;
pub(crate) mod period;

// The figures of a group.
pub(crate) mod distribution;
pub(crate) mod figures;
pub(crate) mod trend;

// Exact values, and rounding for display.
pub(crate) mod value;

pub(crate) use distribution::Distribution;
pub(crate) use figures::{FieldValue, Figures, Measurements, Metric};
pub(crate) use groups::{Group, GroupedFigures, Groups};
pub(crate) use key::{By, KeyPart};
pub(crate) use period::{Period, Step};
pub(crate) use rust_decimal::Decimal;
pub(crate) use value::{ExactValue, distinct, two_digits};
