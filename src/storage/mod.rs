//! TODO

pub(crate) mod cleanup;
pub(crate) mod cloud;
pub(crate) mod escaping;
pub(crate) mod location;
pub(crate) mod output;
pub(crate) mod sqlite;
pub(crate) mod target;
pub(crate) mod temp_file;
pub(crate) use escaping::Escapes;
#[cfg(not(feature = "postgres"))]
pub(crate) use location::no_postgres;
pub(crate) use location::{Location, is_same_file, is_table};
pub(crate) use output::{Compression, EncodedOutput, Published};
pub(crate) use target::OutputTarget;
