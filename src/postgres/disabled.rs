//! Stands in for `postgres` in a build without that feature. An address cannot be parsed, so nothing else here
//! is ever called.

#![allow(
    dead_code,
    clippy::needless_pass_by_value,
    reason = "the same interface as with the feature"
)]

use std::fmt;
use std::sync::atomic::AtomicBool;

use serde::{Serialize, Serializer};

use crate::batch::filter::Fields;
use crate::batch::range::Range;
use crate::batch::{Batch, PlainRow};
use crate::client::ClientOptions;
use crate::error::Failure;

/// A type without values.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Never {}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableAddress(Never);

impl TableAddress {
    pub(crate) fn parse(_: &str) -> Result<Self, Failure> {
        Err(Failure::usage(
            "this build of trayscan does not support PostgreSQL",
            "install one that does with `cargo install --path . --features postgres`",
        ))
    }
}

impl fmt::Display for TableAddress {
    fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {}
    }
}

impl Serialize for TableAddress {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        match self.0 {}
    }
}

pub(crate) struct CopyLoader(Never);

impl CopyLoader {
    pub(crate) fn open(
        address: &TableAddress,
        _: ClientOptions,
        _: &Fields,
        _: bool,
    ) -> Result<Self, Failure> {
        match address.0 {}
    }

    pub(crate) fn write(&mut self, _: &Batch) -> Result<(), Failure> {
        match self.0 {}
    }

    pub(crate) fn finish(self, _: &AtomicBool) -> Result<(UpsertCounts, u64), Failure> {
        match self.0 {}
    }
}

pub(crate) fn left_behind(address: &TableAddress, _: &AtomicBool) -> String {
    match address.0 {}
}

/// Another type without values that can be shown.
pub(crate) type UpsertCounts = TableAddress;

pub(crate) struct TableReader(Never);

impl TableReader {
    pub(crate) fn new(address: TableAddress) -> Self {
        match address.0 {}
    }

    pub(crate) fn connect_with(&mut self, _: ClientOptions) {
        match self.0 {}
    }

    pub(crate) fn limit(&mut self, _: Option<Range>, _: Option<Vec<usize>>) {
        match self.0 {}
    }

    pub(crate) fn open(&self) -> Result<RowStream, Failure> {
        match self.0 {}
    }
}

pub(crate) struct RowStream {
    pub(crate) columns: u32,
    pub(crate) has_extra: bool,
    pub(crate) unknown: Vec<String>,
    never: Never,
}

impl RowStream {
    pub(crate) fn next(&mut self) -> Result<Option<PlainRow>, Failure> {
        match self.never {}
    }
}
