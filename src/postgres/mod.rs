//! A PostgreSQL table as a destination for exports, and as a source for `verify`.
//!
//! Start with [`TableAddress`]: it says which table, on which server, as which user. [`CopyLoader`] buffers
//! the rows of an export in a temporary file and writes them to the table in one transaction at the end.
//! [`TableReader`] reads a table back. All use of the PostgreSQL client is in this folder.
//!
//! Settings, temporary tables and named statements never outlive a transaction, so both directions work
//! through a connection pooler that runs each transaction in another session.

// Which table, on which server, as which user.
mod address;
mod passfile;

// Connections, errors and retries.
mod failure;
mod session;
mod tls;

// The columns to write, and the checks of an existing table.
mod table;

// Batches to rows.
mod escapes;
mod rows;

// Rows to the table.
mod locks;
mod upsert;

// The table to batches.
mod read;

pub(crate) use address::TableAddress;
pub(crate) use read::TableReader;
pub(crate) use upsert::{CopyLoader, UpsertCounts, left_behind};
