//! What to select and in which order: `--where`, `--fields` and `--sort`.

// `--where`: what a condition is, how to read one, and what to say if nothing matches.
mod condition;
mod joins;
mod lookalikes;
mod mistakes;
mod parse;
mod unmatched;
mod wanted;

mod fields;

mod sorting;

// The names of fields.
mod names;

pub(crate) use condition::Condition;
pub(crate) use fields::Fields;
pub(crate) use lookalikes::Lookalikes;
pub(crate) use sorting::Sorting;
pub(crate) use unmatched::Unmatched;
