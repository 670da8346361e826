//! JSON: splits a response into batches, and finds the values in each batch.
//!
//! `split.rs` reads a response piece by piece. `scan.rs` reads a batch without flaws in one pass, and `layout.rs`
//! remembers what was between its values; `index.rs` says what is wrong with any other batch. `tokens.rs` finds the
//! end of a value, `strings.rs` reads and writes escapes, and `pieces.rs` copies short texts.

/// Maximum size of one value; a batch is usually below a kilobyte.
const VALUE_LIMIT: usize = 1 << 20;
/// Maximum number of whitespace characters in a row.
const BLANK_LIMIT: usize = 1 << 16;

pub(crate) mod index;
mod layout;
pub(super) mod pieces;
pub(crate) mod scan;
pub(crate) mod split;
pub(crate) mod strings;
pub(super) mod tokens;
pub(crate) use index::Flaw;
pub(crate) use split::Shape;
