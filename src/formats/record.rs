//! What every reader returns: records, facts about the file, and errors.

use std::ops::ControlFlow;

use crate::batch::Values;
use crate::error::{Failure, Kind};

/// The column of fields that the interface does not know, in formats with fixed columns.
pub(crate) const EXTRA: &str = "extra";

/// One batch of a file.
pub(crate) struct Record<'a> {
    pub(crate) values: &'a dyn Values,
    /// The columns that it has, null ones included, one bit each.
    pub(crate) columns: u32,
    pub(crate) schema: Schema,
    /// Whether every value is known to be valid.
    pub(crate) known_valid: bool,
    pub(crate) place: RecordPlace,
    /// Which file of a lake it is in, counted from 0.
    pub(crate) file: usize,
}

impl<'a> Record<'a> {
    /// A row of a file that has `columns` in every row.
    pub(crate) fn of_row(values: &'a dyn Values, columns: u32, place: RecordPlace) -> Self {
        Self {
            values,
            columns,
            schema: Schema::Fixed,
            known_valid: false,
            place,
            file: 0,
        }
    }
}

/// The position of a batch in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordPlace {
    Line(u64),
    Batch(u64),
}

impl std::fmt::Display for RecordPlace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Line(number) => write!(f, "line {number}"),
            Self::Batch(number) => write!(f, "batch {number}"),
        }
    }
}

/// Receives the records of a file one by one, and returns `Break` to stop.
pub(crate) type RecordHandler<'a> = dyn FnMut(&Record<'_>) -> Result<ControlFlow<()>, Failure> + 'a;

/// What an absent column means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Schema {
    /// The file has fixed columns. An absent one is missing, and an unknown one is foreign.
    #[default]
    Fixed,
    /// As `Fixed`, but users may have added columns of their own, as in a table of a database server.
    Shared,
    /// JSON: each batch has its own fields, and an absent one is null.
    Free,
}

/// What a file says besides its records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FileInfo {
    /// The columns that it has even without a batch, one bit each.
    pub(crate) columns: Option<u32>,
    /// Column names that are not fields of a batch.
    pub(crate) unknown: Vec<String>,
    pub(crate) schema: Schema,
    /// Whether it keeps fields that the interface does not know.
    pub(crate) keeps_unknown_fields: bool,
    /// Whether its last line lacks a line break.
    pub(crate) unended: bool,
    /// The first value that is stored as the wrong type, such as a number as text. Only `export --lenient`
    /// writes such values.
    pub(crate) wrong_type: Option<String>,
    pub(crate) embedded_digest: Option<EmbeddedDigest>,
    /// The first thing that it says besides the batches, such as a figure, that contradicts them.
    pub(crate) contradiction: Option<String>,
    /// Why such figures were not checked.
    pub(crate) unchecked_figures: Option<String>,
}

impl FileInfo {
    /// Combines the facts about two files of one set.
    pub(crate) fn merge(mut self, other: Self) -> Self {
        self.columns = match (self.columns, other.columns) {
            (Some(here), Some(there)) => Some(here & there),
            (here, there) => here.or(there),
        };
        for name in other.unknown {
            if !self.unknown.contains(&name) {
                self.unknown.push(name);
            }
        }
        self.wrong_type = self.wrong_type.or(other.wrong_type);
        self.contradiction = self.contradiction.or(other.contradiction);
        self.unchecked_figures = self.unchecked_figures.or(other.unchecked_figures);
        self.unended |= other.unended;
        if self.schema != other.schema {
            self.schema = Schema::Fixed;
        }
        self.keeps_unknown_fields &= other.keeps_unknown_fields;
        self
    }

    /// Rejects values that are stored as the wrong type; only warns about them if `lenient`.
    pub(crate) fn check_types(&self, name: &str, lenient: bool) -> Result<(), Failure> {
        match &self.wrong_type {
            Some(what) if lenient => {
                log::warn!("{name}: {what}; other programs will read it as another type");
                Ok(())
            }
            Some(what) => Err(
                Failure::new(Kind::Protocol, format!("{name}: {what}")).hint(
                    "the file was modified, or `export --lenient` wrote it; in that case, pass its manifest with `--manifest`",
                ),
            ),
            None => Ok(()),
        }
    }
}

/// The digest that a file contains of its own batches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EmbeddedDigest {
    pub(crate) batches: Option<u64>,
    pub(crate) digest_version: u32,
    pub(crate) set_digest: String,
    /// `None` if the file has no digest of unknown fields.
    pub(crate) unknown_fields_digest: Option<String>,
}

/// Returns the version of a digest: 1 if absent, because the first version was not written; 0 if invalid.
pub(crate) fn parse_digest_version(text: Option<&str>) -> u32 {
    text.map_or(1, |text| text.parse().unwrap_or(0))
}

/// Why reading a file stopped.
#[derive(Debug)]
pub(crate) enum ReadError {
    /// The file cannot be read, or not be unpacked.
    Io(std::io::Error),
    /// The file is damaged or invalid: why, and what to do.
    Broken {
        place: Option<RecordPlace>,
        why: String,
        hint: Option<&'static str>,
    },
    /// The format cannot be read: why, and what to do.
    Foreign { why: String, hint: &'static str },
    /// The receiver of the records failed.
    Aborted(Failure),
}

impl ReadError {
    pub(crate) fn broken(
        place: impl Into<Option<RecordPlace>>,
        why: impl Into<String>,
        hint: impl Into<Option<&'static str>>,
    ) -> Self {
        let (place, why, hint) = (place.into(), why.into(), hint.into());
        Self::Broken { place, why, hint }
    }

    pub(crate) fn cut_short(why: &str) -> Self {
        let why = format!("{why}: it is damaged or cut short");
        Self::broken(None, why, "copy or export it again")
    }

    pub(crate) fn foreign(why: impl Into<String>, hint: &'static str) -> Self {
        let why = why.into();
        Self::Foreign { why, hint }
    }

    /// Turns it into a failure that names the file.
    pub(crate) fn into_failure(self, name: &str) -> Failure {
        match self {
            Self::Aborted(failure) => failure,
            Self::Foreign { why, hint } => {
                Failure::new(Kind::Usage, format!("{name} {why}")).hint(hint)
            }
            Self::Broken { place, why, hint } => {
                let place = place.map_or_else(String::new, |place| format!(", {place}"));
                let failure = Failure::new(Kind::Protocol, format!("{name}{place}: {why}"));
                match hint {
                    Some(hint) => failure.hint(hint),
                    None => failure,
                }
            }
            // Errors of the operating system have a number; the others are from unpacking.
            Self::Io(error) if error.raw_os_error().is_none() => Failure::new(
                Kind::Protocol,
                format!("{name} cannot be unpacked: it is damaged or cut short"),
            )
            .caused_by(error)
            .hint("copy or export it again"),
            Self::Io(error) => {
                Failure::new(Kind::Usage, format!("cannot read {name}")).caused_by(error)
            }
        }
    }
}

impl From<std::io::Error> for ReadError {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}
