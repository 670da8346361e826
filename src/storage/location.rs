//! Locations: standard output, a file, an object in a bucket, or a table.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::Storage;
use super::cleanup::PublishedObjects;
use super::cloud;
use super::path::{is_open_file, is_stderr, is_stdout, resolved};
use crate::error::{Failure, Kind};
use crate::postgres;
use crate::text;

/// Where bytes or batches are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Location {
    Stdout,
    File(PathBuf),
    Object(cloud::ObjectAddress),
    /// A PostgreSQL table.
    Table(Box<postgres::TableAddress>),
}

impl Location {
    /// Parses `name`. `None` means standard output.
    pub(crate) fn new(name: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = name.filter(|path| !is_stdout(path)) else {
            return Ok(Self::Stdout);
        };
        if is_stderr(path) {
            return Err(Failure::usage(
                format!(
                    "`{}` is standard error, which is for messages",
                    path.display()
                ),
                "write to a file, or to standard output, redirected with `>&2`",
            ));
        }
        if let Some(address) = cloud::ObjectAddress::parse(path)? {
            return Ok(Self::Object(address));
        }
        let text = path.to_string_lossy();
        if is_table(&text) {
            let address = postgres::TableAddress::parse(&text)?;
            return Ok(Self::Table(Box::new(address)));
        }
        // The same with one slash; a folder may have such a name.
        if let Some((scheme, rest)) = text.split_once(":/")
            && ["s3", "gs", "az", "postgres", "postgresql"].contains(&scheme)
            && !rest.starts_with('/')
            && !Path::new(&format!("{scheme}:")).is_dir()
        {
            return Err(Failure::usage(
                format!("`{text}` has one slash after `{scheme}:`"),
                format!("did you mean `{scheme}://{rest}`?"),
            ));
        }
        if text.contains("://") {
            return Err(Failure::usage(
                format!(
                    "`{text}`: only files, standard output, object storage and PostgreSQL can be written"
                ),
                "write a file and copy it there, or use s3://, gs://, az:// or postgres://",
            ));
        }
        Ok(Self::File(path.to_owned()))
    }

    pub(crate) fn is_stdout(&self) -> bool {
        matches!(self, Self::Stdout)
    }

    /// Returns the name to use in messages.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Stdout => "standard output".to_owned(),
            // A file name may contain any character, including a line break.
            Self::File(path) => format!("`{}`", text::one_line(&path.to_string_lossy())),
            Self::Object(address) => format!("`{address}`"),
            Self::Table(address) => format!("`{address}`"),
        }
    }

    /// Returns the name to use in a manifest.
    pub(crate) fn address(&self) -> String {
        match self {
            Self::Stdout => "-".to_owned(),
            Self::File(path) => path.display().to_string(),
            Self::Object(address) => address.to_string(),
            Self::Table(address) => address.to_string(),
        }
    }

    /// Returns the name as a path, for its extension and placeholders; `None` for standard output and tables.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        match self {
            Self::Stdout | Self::Table(_) => None,
            Self::File(path) => Some(path.clone()),
            Self::Object(address) => Some(address.to_string().into()),
        }
    }

    /// Returns the path of a local file.
    pub(crate) fn file(&self) -> Option<PathBuf> {
        match self {
            Self::File(path) => Some(path.clone()),
            Self::Stdout | Self::Table(_) | Self::Object(_) => None,
        }
    }

    /// Returns whether both are the same location, even if their names differ.
    pub(crate) fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::File(this), Self::File(that)) => resolved(this) == resolved(that),
            (this, that) => this == that,
        }
    }

    /// Removes the file or object if it exists.
    pub(crate) fn remove(&self, storage: &Storage) -> Result<(), Failure> {
        let removed = match self {
            Self::File(path) => fs::remove_file(path),
            Self::Object(address) => return storage.cloud.remove(address),
            Self::Stdout | Self::Table(_) => Ok(()),
        };
        match removed {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Failure::new(
                Kind::Output,
                format!("cannot remove {}", self.name()),
            )
            .caused_by(error)
            .hint("check that you have write permission for its folder")),
            _ => Ok(()),
        }
    }

    /// Describes the state of this location after a run that did not finish.
    pub(crate) fn left_behind(&self, storage: &Storage) -> String {
        match self {
            Self::File(_) if storage.cleanup.published_files() > 0 => {
                format!("{} is new and complete", self.name())
            }
            // Devices and pipes are written directly, and contain what was written so far.
            Self::File(path) if path.symlink_metadata().is_err() => {
                format!("{} was not written", self.name())
            }
            Self::File(path)
                if !is_open_file(path)
                    && path.metadata().map_or(true, |metadata| metadata.is_file()) =>
            {
                format!("{} is unchanged", self.name())
            }
            Self::Object(_) => match storage.cleanup.published_objects() {
                PublishedObjects::Some => format!("{} is new and complete", self.name()),
                PublishedObjects::Unknown => {
                    format!("{} is either unchanged or new and complete", self.name())
                }
                PublishedObjects::None => format!("{} is unchanged", self.name()),
            },
            Self::Stdout | Self::File(_) => "the output is not complete".to_owned(),
            Self::Table(address) => postgres::left_behind(address, &storage.is_committing),
        }
    }
}

/// Returns whether `text` is the address of a table. It may contain a password, so it is never shown.
pub(crate) fn is_table(text: &str) -> bool {
    let scheme = text.split_once("://").map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| {
        scheme.eq_ignore_ascii_case("postgres") || scheme.eq_ignore_ascii_case("postgresql")
    })
}
