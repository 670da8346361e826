//! PostgreSQL: a table as a place for exports, and read back for `verify`. The one home of the client.
//!
//! An [`TableAddress`] says where. [`CopyLoader`] keeps the rows of an export in a temporary file, and brings them into the
//! table in one transaction at the end. [`TableReader`] is the way back. Nothing is set for a session and no statement
//! has a name, so that both work through a pooler that hands each transaction to another session.

// What an address means, with the variables and the password file that PostgreSQL's own programs read.
mod address;
mod host;
mod options;
mod passfile;
mod table;
mod url;

// Certificates.
mod tls;

// A session, what goes wrong with one, and what is tried again.
mod failure;
mod retry;
mod session;

// What the table looks like, or should.
mod inspect;
mod layout;

// A batch as a row, and rows that wait.
mod encode;
mod escapes;
mod spool;

// Rows on their way into the table.
mod loader;
mod locks;
mod upsert;

// Rows on their way back.
mod read;

pub(crate) use address::TableAddress;
pub(crate) use loader::{CopyLoader, left_behind};
pub(crate) use read::TableReader;
pub(crate) use session::Reach;
pub(crate) use upsert::UpsertCounts;

/// Writes a name so that SQL takes it as it is.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
