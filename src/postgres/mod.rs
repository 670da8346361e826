//! PostgreSQL: a table as a place for exports, and read back for `verify`. The one home of the client.
//!
//! An [`Address`] says where; [`Loading`] brings batches there on a thread of its own, for the client
//! waits where the runtime must not: rows go by binary `COPY` into a table that only its session sees,
//! and at the end one short transaction takes them over into the table itself. [`Reading`] is the way back.

// What an address means, with the variables and the password file that PostgreSQL's own programs read.
mod address;
mod host;
mod passfile;
mod table;
mod words;

// Certificates.
mod tls;

// A session, and what a server says when it will not.
mod failure;
mod session;

// What the table looks like, or should.
mod inspect;
mod layout;

// A batch as a row of a binary `COPY`.
mod cells;
mod escapes;

// Rows on their way into the table.
mod loading;
mod upsert;

// Rows on their way back.
mod reading;

pub(crate) use address::Address;
pub(crate) use loading::{Loading, left_behind};
pub(crate) use reading::Reading;
pub(crate) use upsert::Counts;

/// Writes a name so that SQL takes it as it is.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
