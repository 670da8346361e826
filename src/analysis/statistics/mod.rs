//! Figures over many batches: what `summary` shows in the terminal and `report` on a page.
//!
//! Everything is exact: values are decimals, counts are counts, and only what is shown is rounded, once, at
//! the very end ([`two_digits`]). Memory grows with the number of groups and of *distinct* values, not with
//! the number of batches, and nothing depends on the order in which batches come.
//!
//! A [`Groups`] is a sink of the pipeline: it puts each batch into the [`Figures`] of its [`Key`]. A
//! [`Period`] is a day, ISO week or month, for keys and for series over time.

// Values in order of time, and what they vary by.
pub(crate) mod control;

// The values of one field, and their quartiles.
pub(crate) mod distribution;

// What is told of a group of batches.
pub(crate) mod figures;

// Which group a batch belongs to, and all of them.
pub(crate) mod groups;
pub(crate) mod key;

// Days, weeks and months.
pub(crate) mod period;

// How a figure is shown.
pub(crate) mod round;

// The usable rate over time, in a few spans.
pub(crate) mod trend;

// One value, exact.
pub(crate) mod value;

pub(crate) use control::Control;
pub(crate) use distribution::Distribution;
pub(crate) use figures::{Figures, Metric};
pub(crate) use groups::{Group, GroupedFigures, Groups};
pub(crate) use key::By;
pub(crate) use period::{Period, Step};
pub(crate) use round::two_digits;
pub(crate) use rust_decimal::Decimal;
pub(crate) use value::ExactValue;
