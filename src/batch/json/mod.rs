//! JSON: splits a response into batches, and finds the values in each batch.
//!
//! `split.rs` reads a response piece by piece. `scan.rs` reads a batch without flaws in one pass: `layout.rs`
//! remembers what was between its values, and `names.rs` looks up a name; `parse.rs` reads any other batch. Both
//! return an index (`index.rs`): where the values are. `flaw.rs` judges values, `tokens.rs` finds the end of a value,
//! `strings.rs` reads and writes escapes, and `pieces.rs` copies short texts.

/// Maximum size of one value; a batch is usually below a kilobyte.
const VALUE_LIMIT: usize = 1 << 20;
/// Maximum number of whitespace characters in a row.
const BLANK_LIMIT: usize = 1 << 16;

pub(super) mod flaw;
pub(crate) mod index;
mod layout;
pub(super) mod names;
pub(super) mod parse;
pub(super) mod pieces;
pub(crate) mod scan;
pub(crate) mod split;
pub(crate) mod strings;
pub(super) mod tokens;
pub(crate) use flaw::Flaw;
pub(crate) use split::Shape;
