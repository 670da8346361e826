//! The place that a name means: standard output or a file.

use std::path::{Path, PathBuf};

use super::target::is_stdout;
use crate::error::{Failure, Kind};

/// Where bytes or batches go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Stdout,
    File(PathBuf),
}

impl Place {
    /// Decides which place `name` means; none is standard output.
    pub(crate) fn new(name: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = name.filter(|path| !is_stdout(path)) else {
            return Ok(Self::Stdout);
        };
        let text = path.to_string_lossy();
        if text.contains("://") {
            return Err(Failure::new(
                Kind::Usage,
                format!("`-o {text}`: only files and standard output can be written"),
            )
            .hint("write a file, and copy it where it belongs"));
        }
        Ok(Self::File(path.to_owned()))
    }

    pub(crate) fn is_stdout(&self) -> bool {
        matches!(self, Self::Stdout)
    }

    /// Names the place in messages.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Stdout => "standard output".to_owned(),
            Self::File(path) => format!("`{}`", path.display()),
        }
    }

    /// Names the place in a manifest.
    pub(crate) fn address(&self) -> String {
        match self {
            Self::Stdout => "-".to_owned(),
            Self::File(path) => path.display().to_string(),
        }
    }

    /// Says what a run that did not finish leaves there.
    pub(crate) fn left_behind(&self) -> String {
        match self {
            // What is no regular file was written through, and has what came so far.
            Self::File(path) if path.metadata().map_or(true, |metadata| metadata.is_file()) => {
                format!("{} is as it was before", self.name())
            }
            Self::Stdout | Self::File(_) => "the output is not complete".to_owned(),
        }
    }
}
