//! `sqlite`: a database with one table.

pub(crate) mod database;
pub(crate) mod read;
pub(crate) mod write;
pub(crate) use read::read;
