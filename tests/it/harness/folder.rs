//! A temporary folder.

use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;

/// A temporary folder for the files of a test.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The same as text, for command lines.
    pub(crate) fn name(&self, name: &str) -> String {
        self.at(name).to_str().unwrap().to_owned()
    }

    /// Returns the names of all files, including hidden ones.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort_unstable();
        names
    }
}
