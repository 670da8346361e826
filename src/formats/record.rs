//! Exports read back: bytes to records, whoever wrote them. Readers share nothing with the writers but
//! the list of fields, so that what they find is what is there.
//!
//! A new format is a file here, a word in [`detect::Format`], and a line in [`Source::read`]. A format
//! that cannot be read is refused by its first bytes, in `sniff` as well.

// Files and standard input, opened as often as needed, unpacked.

// Which format it is: by the ending of its name, or by how it begins.

// Many files as one set.

// One file per format, and what there is to find out about CSV before it can be read.

// What a writer wrote, a reader reads: in every dialect.

use std::ops::ControlFlow;

use crate::batch::Values;
use crate::error::{Failure, Kind};

/// One batch of a file.
pub(crate) struct Record<'a> {
    pub(crate) values: &'a dyn Values,
    /// Columns that it has, null ones too, one bit each.
    pub(crate) columns: u32,
    /// It is known that nothing is wrong with any value.
    pub(crate) sound: bool,
    pub(crate) place: RecordPlace,
}

/// Where a batch stands in its file.
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

/// What takes the records of a file, one by one, until it has enough.
pub(crate) type Each<'a> = dyn FnMut(&Record<'_>) -> Result<ControlFlow<()>, Failure> + 'a;

/// What it means that a column is there or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Schema {
    /// The file has columns. One that is not there is lacking, and there are none but those of batches.
    #[default]
    Fixed,
    /// The same, but others may have added columns of their own, as to a table of a database server.
    Shared,
    /// JSON: each batch has its own fields, and one that is not there is null.
    Free,
}

/// What a file tells besides its records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FileInfo {
    /// The columns that it has even where it has no batch, one bit each.
    pub(crate) columns: Option<u32>,
    /// Names in its first line that are no fields.
    pub(crate) unknown: Vec<String>,
    pub(crate) schema: Schema,
    /// It keeps fields that the interface does not know.
    pub(crate) keeps_unknown_fields: bool,
    /// Its last line has no end.
    pub(crate) unended: bool,
    /// The first value that is stored as another type than an export stores it, such as a number as text.
    /// Only `export --lenient` writes such values.
    pub(crate) mistyped: Option<String>,
    pub(crate) claim: Option<EmbeddedDigest>,
}

impl FileInfo {
    /// Puts together what two files of one set tell.
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.columns = match (self.columns, other.columns) {
            (Some(here), Some(there)) => Some(here & there),
            (here, there) => here.or(there),
        };
        for name in other.unknown {
            if !self.unknown.contains(&name) {
                self.unknown.push(name);
            }
        }
        self.mistyped = self.mistyped.or(other.mistyped);
        self.unended |= other.unended;
        if self.schema != other.schema {
            self.schema = Schema::Fixed;
        }
        self.keeps_unknown_fields &= other.keeps_unknown_fields;
        self
    }

    /// Refuses values that are stored as other types, unless they may be: those are only mentioned.
    pub(crate) fn check_types(&self, name: &str, lenient: bool) -> Result<(), Failure> {
        match &self.mistyped {
            Some(what) if lenient => {
                log::warn!("{name}: {what}; other programs take it for something else");
                Ok(())
            }
            Some(what) => Err(
                Failure::new(Kind::Protocol, format!("{name}: {what}")).hint(
                    "somebody altered it, or `export --lenient` wrote it: then name its manifest",
                ),
            ),
            None => Ok(()),
        }
    }
}

/// What a file says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EmbeddedDigest {
    pub(crate) batches: Option<u64>,
    pub(crate) digest_version: u32,
    pub(crate) set_digest: String,
    /// `None` if it says nothing of unknown fields.
    pub(crate) unknown_fields_digest: Option<String>,
}

/// Returns the version of a digest; the first was not told, and 0 stands for what is no version.
pub(crate) fn version(text: Option<&str>) -> u32 {
    text.map_or(1, |text| text.parse().unwrap_or(0))
}

/// Why a file cannot be read, or not on.
#[derive(Debug)]
pub(crate) enum ReadError {
    /// By the machine, or for want of sound packing.
    Io(std::io::Error),
    /// It is not what it should be: why, and what to do.
    Broken {
        place: Option<RecordPlace>,
        why: String,
        hint: Option<&'static str>,
    },
    /// It is none of the formats that can be read: why, and what to do.
    Foreign { why: String, hint: &'static str },
    /// Whoever takes the records says so.
    Aborted(Failure),
}

impl ReadError {
    pub(crate) fn broken(place: RecordPlace, why: impl Into<String>) -> Self {
        Self::Broken {
            place: Some(place),
            why: why.into(),
            hint: None,
        }
    }

    pub(crate) fn cut_short(why: &str) -> Self {
        Self::Broken {
            place: None,
            why: format!("{why}: it is damaged or cut short"),
            hint: Some("copy or export it again"),
        }
    }

    /// Says it of the file called `name`.
    pub(crate) fn of(self, name: &str) -> Failure {
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
            // What the machine reports has a number; the rest was found while unpacking.
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
