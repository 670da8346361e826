//! What SQLite keeps beside a database while programs use it, or when one of them ended without warning.
//!
//! It belongs to the database that it was written for, and SQLite knows that one by its name alone: put
//! another in its place, and readers see a mixture of both.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use super::Place;
use crate::error::{Failure, Kind};

/// Refuses to replace the database at `path`, which is no link, while changes of it wait beside it.
pub(super) fn refuse(path: &Path) -> Result<(), Failure> {
    let (changes, undo) = (beside(path, "-wal"), beside(path, "-journal"));
    let changes = Some(changes).filter(|file| file.metadata().is_ok_and(|found| found.len() > 0));
    let Some(found) = changes.or(Some(undo).filter(|file| is_hot(file))) else {
        return Ok(());
    };
    Err(Failure::new(
        Kind::Output,
        format!(
            "{} has changes of the database {}, and would ruin one that takes its place",
            Place::File(found).name(),
            Place::File(path.to_owned()).name()
        ),
    )
    .hint("close the program that has the database open, or open it once with sqlite3 so that it tidies up; then try again"))
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Tells whether SQLite would undo changes by it: some programs keep the file, and clear its beginning.
fn is_hot(journal: &Path) -> bool {
    let mut first = [0];
    match File::open(journal).map(|mut file| file.read(&mut first)) {
        Ok(Ok(length)) => length > 0 && first != [0],
        // It cannot be looked at, but it is there.
        _ => journal.metadata().is_ok_and(|found| found.len() > 0),
    }
}
