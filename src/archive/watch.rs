//! An archive that is read while other programs write to it. Each read is a snapshot, and nothing is locked
//! in between.

use std::path::PathBuf;
use std::time::Duration;

use super::database::{Archive, damaged, later, unreadable};
use super::schema;
use crate::error::Failure;
use crate::storage::path::file_id;

/// How long to wait for other programs that write to the file after the first read: the caller has data
/// already.
const SHORT_BUSY_TIMEOUT: Duration = Duration::from_millis(250);

/// An archive that is read again after each change.
pub(crate) struct WatchedArchive {
    path: PathBuf,
    open: Option<OpenArchive>,
}

struct OpenArchive {
    archive: Archive,
    /// The identity of the file.
    id: (u64, u64),
    /// SQLite's data version of the last read.
    version: Option<i64>,
}

/// The batches that the service still has, in the order they were first received.
#[derive(Default)]
pub(crate) struct ArchiveContent {
    pub(crate) rows: Vec<i64>,
    /// The batch of each row, as received.
    pub(crate) received: Vec<Box<str>>,
}

impl WatchedArchive {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, open: None }
    }

    /// Returns the content if it has changed since the last call; `None` if not.
    pub(crate) fn read(&mut self) -> Result<Option<ArchiveContent>, Failure> {
        let metadata = self.path.metadata();
        let id = metadata.map(|metadata| file_id(&metadata));
        let id = id.map_err(|error| unreadable(&self.path, error))?;
        let open = match &mut self.open {
            Some(open) if open.id == id => open,
            // The file was replaced.
            known => {
                let archive = Archive::read_source(&self.path)?;
                archive.rollback();
                known.insert(OpenArchive {
                    archive,
                    id,
                    version: None,
                })
            }
        };
        let read = open.read();
        // Holding the lock would block writers.
        open.archive.rollback();
        let archive = &open.archive;
        archive.query(|db| db.busy_timeout(SHORT_BUSY_TIMEOUT))?;
        read
    }

    /// The error for a row at `index` that does not contain a batch.
    pub(crate) fn damaged(&self, content: &ArchiveContent, index: usize) -> Failure {
        damaged(&self.path, content.rows[index])
    }
}

impl OpenArchive {
    fn read(&mut self) -> Result<Option<ArchiveContent>, Failure> {
        let archive = &self.archive;
        archive.run("BEGIN")?;
        let version = archive.value("PRAGMA data_version", [])?;
        if self.version == Some(version) {
            return Ok(None);
        }
        let schema: i64 = archive.value("PRAGMA user_version", [])?;
        if schema > schema::VERSION.into() {
            return Err(later(&archive.path, schema));
        }
        let content = archive.query(|db| {
            let sql = "SELECT rowid, received FROM batches WHERE vanished IS NULL ORDER BY rowid";
            let mut content = ArchiveContent::default();
            let mut statement = db.prepare(sql)?;
            let mut rows = statement.query([])?;
            while let Some(row) = rows.next()? {
                content.rows.push(row.get(0)?);
                content.received.push(row.get_ref(1)?.as_str()?.into());
            }
            Ok(content)
        })?;
        self.version = Some(version);
        Ok(Some(content))
    }
}
