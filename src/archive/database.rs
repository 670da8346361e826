//! An archive as an open SQLite database: its owner, its start, its coverage and its transactions.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::types::FromSql;
use rusqlite::{Connection, OpenFlags, OptionalExtension as _, Params};

use super::coverage::Coverage;
use super::lock::Lock;
use super::schema;
use crate::batch::range::{Range, written};
use crate::batch::whole_second;
use crate::error::{Failure, Kind};
use crate::storage::sqlite::{MAGIC, connect, failure, has_archive_id};
use crate::terminal;

/// How long to wait for other programs that use the file: readers finish quickly.
const BUSY_TIMEOUT: Duration = Duration::from_secs(60);
/// The size of the page cache, in KiB.
const CACHE: i64 = 32 * 1024;
/// The size of the page cache in KiB while rows are only appended, or sorted for an index: a larger one would
/// not help.
const SMALL_CACHE: i64 = 2 * 1024;

/// The service and the client whose batches an archive contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) base_url: String,
    pub(crate) client_id: String,
}

impl Owner {
    /// The name of the sandbox in place of its address: that is a new one each time, but the batches are the same.
    pub(crate) const SANDBOX: &str = "the sandbox";

    pub(crate) fn is_sandbox(&self) -> bool {
        self.base_url == Self::SANDBOX
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.client_id, self.base_url)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArchiveStart {
    /// Not set before the first run.
    Undecided,
    /// The archive contains all batches.
    Beginning,
    /// The archive contains batches from this second on.
    Second(i64),
}

impl ArchiveStart {
    /// Returns the second; `None` if it is not set.
    pub(crate) fn second(self) -> Option<i64> {
        match self {
            Self::Second(second) => Some(second),
            Self::Undecided | Self::Beginning => None,
        }
    }

    /// Returns the start of an archive that is extended back to `start`: never later than before.
    pub(crate) fn extended_to(self, start: Option<i64>) -> Option<i64> {
        match (self, start) {
            (Self::Undecided, start) => start,
            (Self::Second(known), Some(start)) => Some(known.min(start)),
            (known, _) => known.second(),
        }
    }
}

/// The stored start of an archive that contains all batches.
const BEGINNING: &str = "the beginning";

/// An open archive.
pub(crate) struct Archive {
    pub(super) path: PathBuf,
    pub(super) db: Connection,
    /// Whether a command only reads it: it cannot be used if reading fails, but no output has failed.
    is_source: bool,
    /// `None` if it is only read. Must outlive the connection: closing any handle of a file releases all
    /// locks that SQLite has on it.
    pub(super) lock: Option<Lock>,
}

impl Archive {
    /// Opens or creates the archive at `path` for one run; waits at most `wait` for another run.
    pub(crate) fn open(path: &Path, wait: Duration) -> Result<Self, Failure> {
        let mut lock = Lock::take(path, wait)?;
        inspect(path, &mut lock.file)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let db = connect(path, flags).and_then(wait_for_others);
        let archive = Self {
            path: path.to_owned(),
            db: db.map_err(|error| failure(path, error))?,
            is_source: false,
            lock: Some(lock),
        };
        if let Err(error) = archive.prepare() {
            let failure = archive.failure(error);
            archive.rollback();
            archive.close();
            return Err(failure);
        }
        Ok(archive)
    }

    /// Opens the archive at `path` for reading, as a snapshot.
    pub(crate) fn read(path: &Path) -> Result<Self, Failure> {
        let missing = || match path.metadata() {
            Err(error) => unreadable(path, error),
            Ok(_) => no_archive(path, "it is empty"),
        };
        Self::find(path)?.ok_or_else(missing)
    }

    /// The same for a command that never writes to it: a file that is not an archive, or a damaged one, is a usage error.
    pub(crate) fn read_source(path: &Path) -> Result<Self, Failure> {
        let mut archive = Self::read(path).map_err(as_source)?;
        archive.is_source = true;
        Ok(archive)
    }

    /// The same; `None` if there is no file, or an empty one, which a run may have just created.
    pub(crate) fn find(path: &Path) -> Result<Option<Self>, Failure> {
        let unreadable = |error| unreadable(path, error);
        let is_file = match path.metadata() {
            Ok(metadata) => metadata.is_file(),
            Err(error) if is_missing(&error) => return Ok(None),
            Err(error) => return Err(unreadable(error)),
        };
        if !is_file {
            return Err(no_archive(path, "it is not a regular file"));
        }
        let mut file = File::open(path).map_err(unreadable)?;
        if !inspect(path, &mut file)? {
            return Ok(None);
        }
        drop(file);
        // An interrupted transaction is rolled back first, which needs write access.
        let can_write = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let can_read = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let db = connect(path, can_write)
            .or_else(|_| connect(path, can_read))
            .and_then(wait_for_others)
            .map_err(|error| failure(path, error))?;
        let archive = Self {
            path: path.to_owned(),
            db,
            is_source: false,
            lock: None,
        };
        archive.query(|db| db.pragma_update(None, "query_only", true))?;
        // All reads see one snapshot.
        archive.run("BEGIN")?;
        let is_blank = archive.query(|_| archive.is_blank())?;
        Ok((!is_blank).then_some(archive))
    }

    fn prepare(&self) -> rusqlite::Result<()> {
        // Protects against power failures.
        self.db.pragma_update(None, "synchronous", "FULL")?;
        // Another program may have changed the journal mode, and the archive would be more than one file.
        self.db.pragma_update(None, "journal_mode", "DELETE")?;
        // This query rolls back an interrupted transaction, including the creation of the archive.
        if self.is_blank()? {
            self.db.execute_batch("BEGIN IMMEDIATE")?;
            schema::create(&self.db)?;
            self.db.execute_batch("COMMIT")?;
        }
        let has_key = schema::has_key(&self.db)?;
        let cache = if has_key { CACHE } else { SMALL_CACHE };
        self.db.pragma_update(None, "cache_size", -cache)
    }

    /// Returns whether the file is empty, without any tables.
    fn is_blank(&self) -> rusqlite::Result<bool> {
        let sql = "SELECT NOT EXISTS (SELECT 1 FROM sqlite_schema)";
        self.db.query_row(sql, [], |row| row.get(0))
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Sets the owner of the archive; fails if it belongs to another one.
    pub(crate) fn claim(&self, owner: &Owner) -> Result<(), Failure> {
        if let Some(known) = self.owner()?
            && known != *owner
            // An archive that never contained anything has no owner.
            && !(self.coverage()?.is_empty() && self.is_empty()?)
        {
            return Err(self.foreign(&known, owner));
        }
        self.set_owner(owner)
    }

    /// Replaces the owner of the archive, and returns the previous one.
    pub(crate) fn rebind(&self, owner: &Owner) -> Result<Option<Owner>, Failure> {
        let before = self.owner()?;
        if before.as_ref() != Some(owner) {
            self.begin()?;
            self.set_owner(owner)?;
            self.run("COMMIT")?;
        }
        Ok(before)
    }

    fn set_owner(&self, owner: &Owner) -> Result<(), Failure> {
        self.set_about("base_url", &owner.base_url)?;
        self.set_about("client_id", &owner.client_id)
    }

    pub(crate) fn owner(&self) -> Result<Option<Owner>, Failure> {
        let base_url = self.about("base_url")?;
        let client_id = self.about("client_id")?;
        Ok(base_url.zip(client_id).map(|(base_url, client_id)| Owner {
            base_url,
            client_id,
        }))
    }

    fn foreign(&self, known: &Owner, owner: &Owner) -> Failure {
        let hint = if known.is_sandbox() || owner.is_sandbox() {
            "name another file: batches of the sandbox are demo data".to_owned()
        } else {
            let what = if known.base_url == owner.base_url {
                "the ID of the client"
            } else {
                "the address of the service"
            };
            format!(
                "name another file; if only {what} has changed, record it with `trayscan sync FILE --rebind` and the same settings"
            )
        };
        let path = self.path.display();
        Failure::usage(
            format!("the archive `{path}` belongs to {known}, not to {owner}"),
            hint,
        )
    }

    pub(crate) fn since(&self) -> Result<ArchiveStart, Failure> {
        Ok(match self.about("since")? {
            None => ArchiveStart::Undecided,
            Some(text) => read_second(&text).map_or(ArchiveStart::Beginning, ArchiveStart::Second),
        })
    }

    pub(crate) fn set_since(&self, since: Option<i64>) -> Result<(), Failure> {
        let since = since.map_or_else(|| BEGINNING.to_owned(), written);
        self.set_about("since", &since)
    }

    pub(crate) fn coverage(&self) -> Result<Coverage, Failure> {
        self.query(|db| {
            let mut coverage = Coverage::default();
            let mut rows = db.prepare("SELECT covered_from, covered_through FROM coverage")?;
            let mut rows = rows.query([])?;
            while let Some(row) = rows.next()? {
                let (start, end): (Option<String>, String) = (row.get(0)?, row.get(1)?);
                let first = start.as_deref().and_then(read_second);
                let range = Range::between(first, read_second(&end));
                // A date that cannot be parsed does not show what is complete.
                if range.end.is_some() && (start.is_none() || range.start.is_some()) {
                    coverage.add(&range, i64::MAX);
                }
            }
            Ok(coverage)
        })
    }

    /// Returns whether no batch was ever stored.
    pub(crate) fn is_empty(&self) -> Result<bool, Failure> {
        self.value("SELECT NOT EXISTS (SELECT 1 FROM batches)", [])
    }

    /// Counts the batches that the service still has, and those that vanished.
    pub(crate) fn count(&self) -> Result<(u64, u64), Failure> {
        // Two counts, because indexes cover both, and the table is many times larger.
        let sql = "SELECT count(*), (SELECT count(*) FROM batches WHERE vanished IS NOT NULL) FROM batches";
        self.query(|db| {
            db.query_row(sql, [], |row| {
                let (all, vanished): (u64, u64) = (row.get(0)?, row.get(1)?);
                Ok((all.saturating_sub(vanished), vanished))
            })
        })
    }

    /// Counts the batches that vanished from the service.
    pub(crate) fn vanished(&self) -> Result<u64, Failure> {
        self.value(
            "SELECT count(*) FROM batches WHERE vanished IS NOT NULL",
            [],
        )
    }

    /// Counts the batches that the service still has by month, such as `2026-05`, in order of time.
    pub(crate) fn months(&self) -> Result<Vec<(String, u64)>, Failure> {
        self.query(|db| {
            let count = |only: &str| -> rusqlite::Result<BTreeMap<String, u64>> {
                let sql = format!(
                    "SELECT substr(batch_creation_date, 1, 7) AS month, count(*) FROM batches
                    WHERE batch_creation_date IS NOT NULL {only} GROUP BY month"
                );
                let mut rows = db.prepare(&sql)?;
                rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
                    .collect()
            };
            // Two steps, because indexes cover both, and the table is many times larger.
            let mut months = count("")?;
            for (month, vanished) in count("AND vanished IS NOT NULL")? {
                *months.entry(month).or_default() -= vanished;
            }
            Ok(months.into_iter().collect())
        })
    }

    /// Begins a transaction.
    pub(crate) fn begin(&self) -> Result<(), Failure> {
        self.run("BEGIN IMMEDIATE")
    }

    /// Commits the transaction together with the coverage.
    pub(crate) fn commit(&self, coverage: &Coverage) -> Result<(), Failure> {
        if self.db.is_autocommit() {
            // SQLite ends a transaction by itself if the disk is full, for example. Its batches are gone.
            let why = format!(
                "cannot write the archive `{}`: its last changes are lost",
                self.path.display()
            );
            return Err(Failure::new(Kind::Output, why).hint("run the same command again"));
        }
        self.query(|db| {
            db.execute("DELETE FROM coverage", [])?;
            let mut insert = db.prepare("INSERT INTO coverage VALUES (?1, ?2)")?;
            for span in coverage.spans() {
                insert.execute((span.start.map(written), written(span.end)))?;
            }
            Ok(())
        })?;
        self.run("COMMIT")
    }

    /// Rolls back the transaction, if there is one.
    pub(crate) fn rollback(&self) {
        if !self.db.is_autocommit() {
            // If this fails, SQLite rolls back when the archive is next opened.
            let _ = self.db.execute_batch("ROLLBACK");
        }
    }

    /// Creates the key and the indexes that are missing.
    pub(crate) fn index(&self) -> Result<(), Failure> {
        self.query(|_| self.sort(schema::create_indexes))
    }

    /// Creates the key, if it is missing.
    pub(super) fn add_key(&self) -> rusqlite::Result<()> {
        self.sort(schema::create_key)
    }

    /// Runs `create`, which sorts rows.
    fn sort(&self, create: fn(&Connection) -> rusqlite::Result<()>) -> rusqlite::Result<()> {
        // Sorting takes as much memory as the page cache: both together would be too much.
        self.db.pragma_update(None, "cache_size", -SMALL_CACHE)?;
        self.db.release_memory()?;
        create(&self.db)?;
        self.db.pragma_update(None, "cache_size", -CACHE)
    }

    /// Closes the archive, and removes it if this run created it and stored nothing.
    pub(crate) fn close(self) {
        let is_unused = || {
            self.is_blank().unwrap_or(false)
                || self.is_empty().unwrap_or(false)
                    && self.coverage().is_ok_and(|coverage| coverage.is_empty())
        };
        let is_litter = self.lock.as_ref().is_some_and(|lock| lock.created) && is_unused();
        let Self { path, db, lock, .. } = self;
        drop(db);
        if is_litter {
            // If it cannot be removed, an empty archive remains. A link to it remains, too.
            let _ = path.canonicalize().and_then(std::fs::remove_file);
        }
        drop(lock);
    }

    pub(super) fn about(&self, key: &str) -> Result<Option<String>, Failure> {
        let sql = "SELECT value FROM about WHERE key = ?1";
        self.query(|db| db.query_row(sql, [key], |row| row.get(0)).optional())
    }

    pub(super) fn set_about(&self, key: &str, value: &str) -> Result<(), Failure> {
        let sql =
            "INSERT INTO about VALUES (?1, ?2) ON CONFLICT DO UPDATE SET value = excluded.value";
        self.query(|db| db.execute(sql, (key, value)).map(drop))
    }

    pub(super) fn run(&self, sql: &str) -> Result<(), Failure> {
        self.query(|db| db.execute_batch(sql))
    }

    /// Returns the only value that `sql` selects.
    pub(super) fn value<T: FromSql>(&self, sql: &str, values: impl Params) -> Result<T, Failure> {
        self.query(|db| db.query_row(sql, values, |row| row.get(0)))
    }

    /// Runs `work` on the database; an error names the archive.
    pub(super) fn query<'a, T>(
        &'a self,
        work: impl FnOnce(&'a Connection) -> rusqlite::Result<T>,
    ) -> Result<T, Failure> {
        work(&self.db).map_err(|error| self.failure(error))
    }

    pub(super) fn failure(&self, error: rusqlite::Error) -> Failure {
        let failure = failure(&self.path, error);
        if self.is_source {
            as_source(failure)
        } else {
            failure
        }
    }

    /// Returns the failure for damage that SQLite did not notice.
    pub(super) fn corrupt(&self) -> Failure {
        let error = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
        let why = "its table and its indexes disagree".to_owned();
        self.failure(rusqlite::Error::SqliteFailure(error, Some(why)))
    }
}

/// Returns the failure of a command that only reads the archive.
fn as_source(mut failure: Failure) -> Failure {
    if failure.kind == Kind::Output {
        failure.kind = Kind::Usage;
    }
    failure
}

/// Lets a connection wait for other programs that have locked the database, and say so if it takes long.
fn wait_for_others(mut db: Connection) -> rusqlite::Result<Connection> {
    const STEP: Duration = Duration::from_millis(50);
    fn wait(attempts: i32) -> bool {
        if attempts == 20 {
            terminal::note("waiting for another program that is using the archive");
        }
        std::thread::sleep(STEP);
        STEP * attempts.unsigned_abs() < BUSY_TIMEOUT
    }
    db.busy_handler(Some(wait))?;
    Ok(db)
}

/// Parses a second as stored in archives.
pub(crate) fn read_second(text: &str) -> Option<i64> {
    whole_second(text.strip_suffix('Z')?)
}

/// Checks the header of a file; returns false if the file is empty, so that it may become an archive. Refuses it if
/// it is not an archive, or one of a later trayscan. SQLite is not used for this: it might try to repair a file
/// that is not ours.
fn inspect(path: &Path, file: &mut File) -> Result<bool, Failure> {
    let mut head = Vec::new();
    let read = file.take(100).read_to_end(&mut head);
    read.map_err(|error| no_archive(path, "it cannot be read").caused_by(error))?;
    if head.is_empty() {
        return Ok(false);
    }
    if head.len() < 100 || !head.starts_with(MAGIC) {
        return Err(no_archive(path, "it is not an SQLite database"));
    }
    if !has_archive_id(&head) {
        return Err(no_archive(path, "it is a different SQLite database"));
    }
    // The offset of the version in the SQLite file header.
    let version = head[60..].first_chunk().copied().map(u32::from_be_bytes);
    match version.filter(|version| *version > schema::VERSION) {
        Some(version) => Err(later(path, version.into())),
        None => Ok(true),
    }
}

pub(super) fn later(path: &Path, version: i64) -> Failure {
    let message = format!(
        "the archive `{}` was created by a later version of trayscan (schema {version}, supported {})",
        path.display(),
        schema::VERSION
    );
    Failure::new(Kind::Output, message).hint("update trayscan; the archive was not changed")
}

pub(super) fn unreadable(path: &Path, error: io::Error) -> Failure {
    let message = format!("cannot open the archive `{}`", path.display());
    let hint = if is_missing(&error) {
        "create an archive with `trayscan sync FILE`"
    } else {
        "check the permissions of the file and of its folder"
    };
    Failure::usage(message, hint).caused_by(error)
}

/// Returns whether `error` means that there is no such file.
fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

fn no_archive(path: &Path, why: &str) -> Failure {
    let message = format!("`{}` is not a trayscan archive: {why}", path.display());
    Failure::new(Kind::Output, message)
        .hint("the file was not changed; name an archive, or create one: `trayscan sync NEW_FILE`")
}

pub(super) fn damaged(path: &Path, row: i64) -> Failure {
    let message = format!("row {row} of `{}` does not contain a batch", path.display());
    Failure::new(Kind::Protocol, message)
        .hint("the archive was modified; `trayscan sync --full` fetches all batches again")
}
