//! The list of files that a run is about to change in a lake, stored next to its manifest.
//!
//! A run that is killed between its first file and its manifest leaves this list. The next run checks each of
//! these files again, whatever its range. Without the list, files of the killed run could not be
//! distinguished from those that the manifest describes.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::template::Template;
use crate::error::{Failure, Kind};
use crate::storage::cloud;
use crate::storage::{Location, Storage};

/// The list of files that a run is about to change.
pub(crate) struct Pending {
    pub(super) location: Location,
    template: String,
    /// Files that may be removed, or that an earlier run did not finish.
    pub(crate) others: BTreeSet<String>,
}

/// The list as stored.
#[derive(Deserialize, Serialize)]
struct PendingList {
    template: String,
    files: BTreeSet<String>,
}

impl Pending {
    /// Returns the list that belongs to `manifest`.
    pub(crate) fn new(manifest: &Path, template: &Template) -> Result<Self, Failure> {
        Ok(Self {
            location: Location::new(Some(&pending_path(manifest)))?,
            template: template.text(),
            others: BTreeSet::new(),
        })
    }

    /// Reads the template and the files from the list that a killed run left next to `manifest`; `None` if
    /// there is none.
    pub(crate) fn read(
        manifest: &Path,
        storage: &Storage,
    ) -> Result<Option<(String, BTreeSet<String>)>, Failure> {
        let path = pending_path(manifest);
        let text = match Location::new(Some(&path))? {
            Location::Object(address) => {
                if !storage
                    .cloud
                    .sizes(&address)?
                    .contains_key(&address.to_string())
                {
                    return Ok(None);
                }
                std::fs::read(cloud::download(&address, storage)?.path())
            }
            _ if !path.exists() => return Ok(None),
            _ => std::fs::read(&path),
        };
        let list = text.and_then(|text| Ok(serde_json::from_slice::<PendingList>(&text)?));
        let list = list.map_err(|error| {
            Failure::new(Kind::Output, format!("cannot read `{}`", path.display()))
                .caused_by(error)
                .hint("a killed run left this file: remove it and `_manifest.json`, and the next run writes all files again")
        })?;
        Ok(Some((list.template, list.files)))
    }

    /// Writes the list before the first of `files` is changed.
    pub(crate) fn write(
        &self,
        files: impl Iterator<Item = String>,
        storage: &Storage,
    ) -> Result<(), Failure> {
        let list = PendingList {
            template: self.template.clone(),
            files: files.chain(self.others.iter().cloned()).collect(),
        };
        if list.files.is_empty() {
            return Ok(());
        }
        let text = serde_json::to_vec(&list);
        let text = text.map_err(|error| {
            Failure::new(Kind::Internal, "cannot list the pending changes").caused_by(error)
        })?;
        storage.replace(&self.location, &text)
    }

    /// Removes the list once the manifest is up to date.
    pub(crate) fn remove(&self, storage: &Storage) -> Result<(), Failure> {
        self.location.remove(storage)
    }
}

fn pending_path(manifest: &Path) -> PathBuf {
    let name = manifest.file_name().unwrap_or_default().to_string_lossy();
    // Engines skip names that start with an underscore.
    let mark = if name.starts_with('_') { "" } else { "_" };
    manifest.with_file_name(format!("{mark}{name}.pending"))
}
