//! SQLite databases as files: how to open them, detect damage, and handle journals next to them.
//!
//! SQLite keeps a journal next to a database while it is in use, or after a program crashed. The journal is
//! found by its name alone: if the database is replaced, readers see a mixture of both.

use std::error::Error as _;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension as _};

use crate::error::{Failure, Kind};
use crate::text;

/// The first bytes of a database.
pub(crate) const MAGIC: &[u8] = b"SQLite format 3\0";
/// The application ID in the header of an archive: "tray".
pub(crate) const ARCHIVE_ID: u32 = 0x7472_6179;

/// Returns whether the file at `path` is an archive of `trayscan sync`.
pub(crate) fn is_archive(path: &Path) -> bool {
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(100).read_to_end(&mut head));
    read.is_ok() && has_archive_id(&head)
}

/// Returns whether a file that starts with `head` is a database and an archive. Text may have the ID in the same place.
pub(crate) fn has_archive_id(head: &[u8]) -> bool {
    head.starts_with(MAGIC) && head.get(68..72) == Some(&ARCHIVE_ID.to_be_bytes()[..])
}

/// Opens the file at `path` literally: SQLite would interpret names such as `:memory:` or `file:x?mode=ro`.
pub(crate) fn connect(path: &Path, flags: OpenFlags) -> rusqlite::Result<Connection> {
    let absolute = path.canonicalize().or_else(|_| std::path::absolute(path));
    Connection::open_with_flags(absolute.as_deref().unwrap_or(path), flags)
}

/// Fails if the database at `path`, which must not be a link, has unfinished changes in a journal.
pub(crate) fn refuse_sidecars(path: &Path) -> Result<(), Failure> {
    let (changes, undo) = (sidecar(path, "-wal"), sidecar(path, "-journal"));
    let changes = Some(changes).filter(|file| file.metadata().is_ok_and(|found| found.len() > 0));
    let Some(found) = changes.or(Some(undo).filter(|file| is_hot(file))) else {
        return Ok(());
    };
    Err(Failure::new(
        Kind::Output,
        format!(
            "{} contains unfinished changes of the database {}, and would corrupt its replacement",
            shown(&found),
            shown(path)
        ),
    )
    .hint("close the program that has the database open, or open it once with sqlite3 to finish the changes; then try again"))
}

fn sidecar(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Returns whether SQLite would roll back changes with this journal: some programs keep the file, and clear
/// its header.
fn is_hot(journal: &Path) -> bool {
    let mut first = [0];
    match File::open(journal).map(|mut file| file.read(&mut first)) {
        Ok(Ok(length)) => length > 0 && first != [0],
        // It exists but cannot be read.
        _ => journal.metadata().is_ok_and(|found| found.len() > 0),
    }
}

fn shown(path: &Path) -> String {
    format!("`{}`", text::one_line(&path.to_string_lossy()))
}

/// Converts an SQLite error to an I/O error.
pub(crate) fn io_error(error: rusqlite::Error) -> io::Error {
    let kind = match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => io::ErrorKind::StorageFull,
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, error)
}

/// Returns whether SQLite reported the file as damaged.
pub(crate) fn is_damage(failure: &Failure) -> bool {
    let mut causes = std::iter::successors(failure.source(), |cause| (*cause).source());
    causes
        .find_map(|cause| cause.downcast_ref())
        .is_some_and(is_damage_error)
}

pub(crate) fn is_damage_error(error: &rusqlite::Error) -> bool {
    use ErrorCode::{DatabaseCorrupt, NotADatabase};
    matches!(
        error.sqlite_error_code(),
        Some(DatabaseCorrupt | NotADatabase)
    )
}

/// Converts an SQLite error of an archive to a failure of the matching kind.
pub(crate) fn failure(path: &Path, error: rusqlite::Error) -> Failure {
    failure_of("the archive", path, error)
}

fn failure_of(noun: &str, path: &Path, error: rusqlite::Error) -> Failure {
    let code = error.sqlite_error_code();
    let details = error.sqlite_error().map(|error| error.extended_code);
    let (kind, what, hint) = match code {
        _ if details == Some(rusqlite::ffi::SQLITE_READONLY_DBMOVED) => (
            Kind::Output,
            "something has moved or removed",
            "leave the file in its place while a run writes to it; run the command again",
        ),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => (
            Kind::Locked,
            "another program is using",
            "wait until it has finished, then try again",
        ),
        Some(ErrorCode::DiskFull) => (
            Kind::Output,
            "no space left for",
            "free some space and run the command again: it continues from the last commit",
        ),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => (
            Kind::Output,
            "SQLite reports damage in",
            "keep a copy of the file, then `sync` to a new one; `sqlite3 FILE .recover` may help",
        ),
        Some(
            ErrorCode::SystemIoFailure
            | ErrorCode::ReadOnly
            | ErrorCode::CannotOpen
            | ErrorCode::PermissionDenied,
        ) => (
            Kind::Output,
            "cannot read or write",
            "check the disk, the permissions of the file and its folder, and the limits (`ulimit -f`, `ulimit -n`)",
        ),
        _ if matches!(error, rusqlite::Error::StatementChangedRows(_)) => (
            Kind::Output,
            "a row was not written to",
            "a trigger may be the cause: `sqlite3 FILE .schema` lists them",
        ),
        _ => (
            Kind::Internal,
            "unexpected error in",
            "the archive is unchanged since its last commit; please report this",
        ),
    };
    Failure::new(kind, format!("{what} {noun} `{}`", path.display()))
        .caused_by(error)
        .hint(hint)
}

/// Does the same for a file that is only read: damage counts as a difference.
pub(crate) fn read_failure(path: &Path, error: rusqlite::Error) -> Failure {
    if is_damage_error(&error) {
        return damage(path, error.into());
    }
    failure_of("the database", path, error)
}

/// Checks every page and every index, and stops at the first problem.
pub(crate) fn check_pages(db: &Connection, path: &Path) -> Result<(), Failure> {
    // `quick_check` does not compare the indexes with the rows.
    let found = db.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0));
    let found: String = found.map_err(|error| read_failure(path, error))?;
    let size = |pragma| db.pragma_query_value(None, pragma, |row| row.get::<_, u64>(0));
    let pages = size("page_count").and_then(|pages| Ok(pages * size("page_size")?));
    let pages = pages.map_err(|error| failure(path, error))?;
    match found.as_str() {
        "ok" if path.metadata().is_ok_and(|file| file.len() > pages) => Err(damage(
            path,
            anyhow::anyhow!("there is more after its last page"),
        )),
        "ok" => Ok(()),
        _ => Err(damage(path, anyhow::Error::msg(found))),
    }
}

/// Refuses an own index that claims to have only some rows: queries would find too many or too few, and the check of the
/// pages does not notice.
pub(crate) fn check_indexes(db: &Connection, path: &Path) -> Result<(), Failure> {
    let sql = r"SELECT own.name FROM pragma_index_list('batches') AS own JOIN sqlite_schema AS found USING (name)
        WHERE own.partial AND own.name LIKE 'batches\_%' ESCAPE '\'
        AND found.sql NOT LIKE '% ON batches (vanished) WHERE vanished IS NOT NULL'";
    let found: rusqlite::Result<Option<String>> =
        db.query_row(sql, [], |row| row.get(0)).optional();
    let Some(name) = found.map_err(|error| read_failure(path, error))? else {
        return Ok(());
    };
    let message = format!(
        "`{}`: the index `{name}` has only some of the batches",
        path.display()
    );
    Err(Failure::new(Kind::Protocol, message).hint("the database was modified; export it again"))
}

/// Refuses a `batches` that is not a plain table: a view or a virtual table can return any rows.
pub(crate) fn check_table(db: &Connection, path: &Path) -> Result<(), Failure> {
    let sql = "SELECT type, coalesce(rootpage, 0) FROM sqlite_schema
        WHERE name = 'batches' COLLATE NOCASE AND type IN ('table', 'view')";
    let found: rusqlite::Result<Option<(String, i64)>> = db
        .query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional();
    let is_a = match found {
        Ok(Some((kind, _))) if kind == "view" => "a view",
        Ok(Some((_, 0))) => "a virtual table",
        Ok(_) => return Ok(()),
        Err(error) => return Err(read_failure(path, error)),
    };
    let message = format!(
        "`{}`: `batches` is {is_a}, not a plain table",
        path.display()
    );
    Err(Failure::new(Kind::Protocol, message).hint("the database was modified; export it again"))
}

pub(crate) fn damage(path: &Path, why: anyhow::Error) -> Failure {
    let message = format!("`{}` is damaged or cut short", path.display());
    Failure::new(Kind::Protocol, message)
        .caused_by(why)
        .hint("copy or export it again")
}
