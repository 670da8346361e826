//! The formats of exports, and what each can store.

use crate::batch::Representation;

/// The format of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Json,
    Ndjson,
    Csv,
    Tsv,
    Table,
    Xlsx,
    Parquet,
    Sqlite,
    Singer,
    /// Rows of a table, chosen by a `postgres://` address and not by name.
    Postgres,
}

impl Format {
    /// The formats that can be chosen by name.
    pub(crate) const ALL: [Self; 9] = [
        Self::Json,
        Self::Ndjson,
        Self::Csv,
        Self::Tsv,
        Self::Table,
        Self::Xlsx,
        Self::Parquet,
        Self::Sqlite,
        Self::Singer,
    ];

    /// Returns whether it can only be written to a file.
    pub(crate) fn needs_file(self) -> bool {
        matches!(self, Self::Xlsx | Self::Parquet | Self::Sqlite)
    }

    /// Returns how it represents the values of a batch.
    pub(crate) fn representation(self) -> Representation {
        match self {
            Self::Json | Self::Ndjson => Representation::Json,
            Self::Parquet | Self::Sqlite | Self::Singer => Representation::Typed,
            Self::Csv | Self::Tsv | Self::Table | Self::Xlsx | Self::Postgres => {
                Representation::Text
            }
        }
    }

    /// Returns whether it keeps fields that the interface does not know.
    pub(crate) fn keeps_unknown_fields(self) -> bool {
        !matches!(self, Self::Csv | Self::Tsv | Self::Table | Self::Xlsx)
    }

    /// Returns whether a file contains the digest of its batches.
    pub(crate) fn embeds_digest(self) -> bool {
        matches!(self, Self::Parquet | Self::Xlsx)
    }

    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Ndjson => "ndjson",
            Self::Csv => "csv",
            Self::Tsv => "tsv",
            Self::Table => "table",
            Self::Xlsx => "xlsx",
            Self::Parquet => "parquet",
            Self::Sqlite => "sqlite",
            Self::Singer => "singer",
            Self::Postgres => "postgres",
        }
    }
}
