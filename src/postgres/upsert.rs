//! Loads batches into a table: a rehearsal first, then a single transaction.
//!
//! Batches are buffered in a temporary file until all have arrived. So no connection or transaction is open
//! while waiting for the service, and server errors at the end can be retried.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;
use tokio_postgres::error::SqlState;

use super::address::{TableAddress, quoted};
use super::failure::PgError;
use super::locks::{AGAINST_READERS, AGAINST_ROWS, AGAINST_THE_TABLE, Locks};
use super::rows::RowSpool;
use super::session::{Connector, Limit, PgSession, Purpose, wait};
use super::table::{self, Layout};
use crate::batch::Batch;
use crate::batch::filter::Fields;
use crate::client::ClientOptions;
use crate::error::{Failure, Kind};
use crate::terminal;
use crate::text::{count, thousands};

/// What statements do, for messages.
const CREATING: &str = "create the table";
const WAITING: &str = "wait for another export";
const WRITING: &str = "write to the table";

/// How often to ask the server about the result of a transaction.
const PAUSE: Duration = Duration::from_millis(500);

/// The number of rows by what happened to them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct UpsertCounts {
    #[serde(rename = "new")]
    inserted: u64,
    changed: u64,
    unchanged: u64,
}

impl fmt::Display for UpsertCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} new, {} changed, {} unchanged",
            thousands(self.inserted),
            thousands(self.changed),
            thousands(self.unchanged)
        )
    }
}

/// Loads batches into a table. If it is dropped without [`CopyLoader::finish`], nothing is written.
pub(crate) struct CopyLoader {
    connector: Arc<Connector>,
    upsert: Upsert,
    rows: RowSpool,
}

impl CopyLoader {
    /// Checks that batches can be written.
    pub(crate) fn open(
        address: &TableAddress,
        options: ClientOptions,
        fields: &Fields,
        lenient: bool,
    ) -> Result<Self, Failure> {
        let address = address.clone();
        let connector = Arc::new(Connector { address, options });
        let layout = Layout::new(fields, lenient);
        let upsert =
            wait(connector.retry(async || Upsert::rehearse(&connector, layout.clone()).await))?;
        Ok(Self {
            rows: RowSpool::new(upsert.layout.clone()),
            connector,
            upsert,
        })
    }

    pub(crate) fn write(&mut self, batch: &Batch) -> Result<(), Failure> {
        self.rows.add(batch)
    }

    /// Writes everything to the table: all of it, or nothing. Sets `is_committing` while the transaction may be
    /// committed. Also returns the number of texts with escapes.
    pub(crate) fn finish(
        mut self,
        is_committing: &AtomicBool,
    ) -> Result<(UpsertCounts, u64), Failure> {
        let (connector, rows) = (&self.connector, &mut self.rows);
        let written = wait(
            connector.retry(async || self.upsert.attempt(connector, rows, is_committing).await),
        );
        let counts = written.map_err(|failure| {
            if is_committing.load(Ordering::SeqCst) {
                return failure;
            }
            let table = connector.address.table.quoted();
            let message = format!("export stopped; the table {table} is unchanged");
            Failure::new(failure.kind, message).caused_by(failure)
        })?;
        Ok((counts, self.rows.escaped))
    }
}

/// Describes the state of the table after a run that did not finish.
pub(crate) fn left_behind(address: &TableAddress, is_committing: &AtomicBool) -> String {
    let table = address.table.quoted();
    if is_committing.load(Ordering::SeqCst) {
        format!("the table {table} is either unchanged or has all batches")
    } else {
        format!("the table {table} is unchanged")
    }
}

/// The table to write.
struct Upsert {
    layout: Layout,
    /// With its schema, quoted for SQL.
    table: String,
    /// Whether the table existed at the start.
    exists: bool,
}

/// The result of a transaction whose response was lost.
enum CommitOutcome {
    Committed,
    Aborted,
    /// The server was started since, or is another one: its transactions may have the same IDs.
    OtherServer,
    Unknown,
}

/// A transaction about which the server can be asked: its number, and when the server was started.
type TransactionId = [String; 2];

const SERVER_START: &str = "select extract(epoch from pg_postmaster_start_time())::text";

impl Upsert {
    /// Finds the table, or its future schema, and checks that batches fit. Runs all statements without
    /// batches, in a transaction that is rolled back: missing permissions are detected now.
    async fn rehearse(connector: &Arc<Connector>, layout: Layout) -> Result<Self, PgError> {
        let session = connector.connect().await?;
        let rehearsed = Self::go_through(&session, layout).await;
        session.close().await;
        rehearsed
    }

    async fn go_through(session: &PgSession, mut layout: Layout) -> Result<Self, PgError> {
        session.begin(Purpose::Write).await?;
        let found = table::find(session, &session.connector.address.table.quoted()).await?;
        let table = match &found {
            Some(found) => {
                found.check(session, &mut layout).await?;
                found.name.clone()
            }
            None => new_table_name(session).await?,
        };
        refuse_temporary(&table)?;
        let upsert = Self {
            layout,
            table,
            exists: found.is_some(),
        };
        match upsert.dry_run(session).await {
            // The lock is waited for when there is something to write.
            Err(error) if error.is(&SqlState::LOCK_NOT_AVAILABLE) => {
                log::info!("{} is currently locked by another session", upsert.table);
            }
            other => other?,
        }
        Ok(upsert)
    }

    /// Lets the server plan all statements, which checks names, types and permissions. Nothing is written
    /// except two empty tables at most, which are rolled back.
    async fn dry_run(&self, session: &PgSession) -> Result<(), PgError> {
        let locks = Locks::new(session, &self.table).await?;
        self.create_staging(session).await?;
        if !self.exists {
            // Another export that is creating it has checked that already.
            if !self.try_advisory_lock(session).await? {
                return Ok(());
            }
            if self.create(session, &locks).await? {
                self.add_key(session).await?;
            }
        }
        let statements = [
            self.layout.update(&self.table),
            Some(self.layout.insert(&self.table)),
        ];
        for statement in statements.into_iter().flatten() {
            let explain = format!("explain {statement}");
            session.run(WRITING, Limit::Long, &explain).await?;
        }
        Ok(())
    }

    /// Creates the temporary table for the rows.
    async fn create_staging(&self, session: &PgSession) -> Result<(), PgError> {
        let existing = self.exists.then_some(self.table.as_str());
        let create = self.layout.create_staging(existing);
        session
            .run("create a temporary table", Limit::Long, &create)
            .await
    }

    /// The name of the advisory lock for exports that create the same table.
    fn advisory_key(&self) -> String {
        format!("trayscan {}", self.table)
    }

    /// Returns whether no other export is creating the table.
    async fn try_advisory_lock(&self, session: &PgSession) -> Result<bool, PgError> {
        let statement = "select pg_try_advisory_xact_lock(hashtext($1))";
        let lock_key = self.advisory_key();
        session.value(WAITING, statement, &[&lock_key]).await
    }

    /// Creates the table, without its key, if it does not exist; one export at a time, to avoid conflicts.
    /// Returns whether it did.
    async fn create(&self, session: &PgSession, locks: &Locks<'_>) -> Result<bool, PgError> {
        let (lock_key, create) = (self.advisory_key(), self.layout.create(&self.table));
        locks
            .wait(&[], async || {
                let statement = "select pg_advisory_xact_lock(hashtext($1))";
                session
                    .rows(WAITING, Limit::Long, statement, &[&lock_key])
                    .await?;
                if table::find(session, &self.table).await?.is_some() {
                    return Ok(false);
                }
                session.run(CREATING, Limit::Long, &create).await?;
                Ok(true)
            })
            .await
            .map_err(|mut error| {
                // Another session has just created the same table.
                error.is_transient |=
                    error.is(&SqlState::UNIQUE_VIOLATION) || error.is(&SqlState::DUPLICATE_TABLE);
                error
            })
    }

    /// Adds the key to the table that this transaction has created.
    async fn add_key(&self, session: &PgSession) -> Result<(), PgError> {
        let add = Layout::add_key(&self.table);
        session.run(CREATING, Limit::Long, &add).await
    }

    /// Checks the table, which another session may have created or changed since the rehearsal.
    async fn check_again(&self, session: &PgSession) -> Result<(), PgError> {
        let Some(found) = table::find(session, &self.table).await? else {
            return Ok(());
        };
        let mut layout = self.layout.clone();
        found.check(session, &mut layout).await?;
        let limits = |layout: &Layout| -> Vec<_> {
            let fields = layout.fields.iter();
            fields.map(|field| field.digits).collect()
        };
        // The rows were checked for the limits at the start.
        if limits(&layout) == limits(&self.layout) {
            return Ok(());
        }
        let created = if self.exists { "changed" } else { "created" };
        let message = format!(
            "another session {created} {} during the export, with other limits on numbers",
            self.table
        );
        Err(Failure::new(Kind::Unavailable, message)
            .hint("run the same command again: it checks the numbers first")
            .into())
    }

    /// Writes the buffered rows to the table: all of them, or none.
    async fn attempt(
        &self,
        connector: &Arc<Connector>,
        spool: &mut RowSpool,
        is_committing: &AtomicBool,
    ) -> Result<UpsertCounts, PgError> {
        let session = connector.connect().await?;
        let (counts, transaction) = match self.prepare(&session, spool).await {
            Ok(prepared) => prepared,
            Err(error) => {
                session.close().await;
                return Err(error);
            }
        };
        is_committing.store(true, Ordering::SeqCst);
        let Err(error) = session.commit().await else {
            session.close().await;
            return Ok(counts);
        };
        drop(session);
        let outcome = if error.code.is_some() {
            Ok(CommitOutcome::Aborted)
        } else {
            terminal::note(&format!(
                "{}; asking the server for the result",
                error.failure
            ));
            commit_outcome(connector, &transaction).await
        };
        match outcome {
            Ok(CommitOutcome::Committed) => Ok(counts),
            Ok(CommitOutcome::Aborted) => {
                is_committing.store(false, Ordering::SeqCst);
                Err(error)
            }
            // Existing batches are not written twice.
            Ok(CommitOutcome::OtherServer) => {
                Err(PgError::transient(self.uncertain(error.failure)))
            }
            Ok(CommitOutcome::Unknown) => Err(self.uncertain(error.failure).into()),
            Err(failure) => Err(self.uncertain(failure).into()),
        }
    }

    /// Does everything except the commit. Also returns the transaction ID: if the response to the commit is
    /// lost, the server can be asked about it.
    async fn prepare(
        &self,
        session: &PgSession,
        spool: &mut RowSpool,
    ) -> Result<(UpsertCounts, TransactionId), PgError> {
        session.begin(Purpose::Write).await?;
        let counts = self.load(session, spool).await?;
        let number = session.value("commit", "select txid_current()::text", &[]);
        let number = number.await?;
        let server = session.value("commit", SERVER_START, &[]).await?;
        Ok((counts, [number, server]))
    }

    /// Copies the rows, compares them with those of the table, and writes those that differ.
    async fn load(
        &self,
        session: &PgSession,
        spool: &mut RowSpool,
    ) -> Result<UpsertCounts, PgError> {
        let table = &self.table;
        let locks = Locks::new(session, table).await?;
        let staging = locks.wait(AGAINST_READERS, async || self.create_staging(session).await);
        staging.await?;
        if self.exists {
            // From here on, the temporary table protects it from changes.
            self.check_again(session).await?;
        }
        self.copy(session, spool).await?;
        if !self.exists {
            if !self.create(session, &locks).await? {
                self.check_again(session).await?;
            } else if self.has_triggers(session).await? {
                // An event trigger may add some to a new table.
                self.add_key(session).await?;
            } else {
                return self.fill(session, spool.rows).await;
            }
        }
        self.prepare_comparison(session).await?;
        if self.compare(session, &locks).await? == (0, 0) {
            return Ok(UpsertCounts {
                unchanged: spool.rows,
                ..UpsertCounts::default()
            });
        }
        // Other exports wait here for their turn, to avoid deadlocks and to keep the counts correct. Readers
        // are not blocked.
        let lock = format!("lock table {table} in share row exclusive mode");
        let locked = locks.wait(AGAINST_THE_TABLE, async || {
            session.run("lock the table", Limit::Long, &lock).await
        });
        locked.await?;
        let (new, differing) = self.compare(session, &locks).await?;
        let write = async |statement: String| {
            let write = async || session.write(WRITING, &statement).await;
            locks.wait(AGAINST_ROWS, write).await
        };
        let changed = match self.layout.update(table) {
            Some(update) => write(update).await?,
            None => 0,
        };
        let inserted = write(self.layout.insert(table)).await?;
        let is_counted = (inserted, changed) == (new, differing);
        if !is_counted || self.has_triggers(session).await? {
            // Deferred triggers would otherwise run with the commit.
            let now = "set constraints all immediate";
            session.run(WRITING, Limit::Long, now).await?;
            let (missing, other) = self.compare(session, &locks).await?;
            // A trigger may have moved rows to a child table, and the server does not count those.
            if missing > 0 || !is_counted && other > 0 {
                let written = (inserted.min(new.saturating_sub(missing)), changed);
                return Err(self.refused(session, written, (new, differing)).into());
            }
            if other > 0 {
                let batches = count(other, "batch", "batches");
                log::warn!(
                    "the values of {batches} in {table} are not as exported; a trigger may have changed them, and `verify` \
                     reports them"
                );
            }
        }
        Ok(UpsertCounts {
            inserted: new,
            changed: differing,
            unchanged: spool.rows.saturating_sub(new + differing),
        })
    }

    /// Writes all rows to the table that this transaction has created. No other session can see it yet. The
    /// key is added at the end, which is faster than updating it with every row.
    async fn fill(&self, session: &PgSession, rows: u64) -> Result<UpsertCounts, PgError> {
        let insert = self.layout.insert_all(&self.table);
        let inserted = session.write(WRITING, &insert).await?;
        if inserted != rows {
            return Err(self.refused(session, (inserted, 0), (rows, 0)).into());
        }
        self.add_key(session).await?;
        Ok(UpsertCounts {
            inserted,
            ..UpsertCounts::default()
        })
    }

    /// Counts the rows that are new, and those that differ.
    async fn compare(&self, session: &PgSession, locks: &Locks<'_>) -> Result<(u64, u64), PgError> {
        let doing = "compare the batches";
        let compare = self.layout.compare(&self.table);
        let rows = locks.wait(AGAINST_READERS, async || {
            session.rows(doing, Limit::Long, &compare, &[]).await
        });
        let rows = rows.await?;
        let count = |column| session.cell(doing, &rows, column).map(i64::unsigned_abs);
        Ok((count(0)?, count(1)?))
    }

    /// Returns whether the table or one of its partitions has triggers or rules, which may change or remove what was
    /// written.
    async fn has_triggers(&self, session: &PgSession) -> Result<bool, PgError> {
        let statement = "with recursive tables (id) as (select to_regclass($1)::oid union \
            select inhrelid from pg_catalog.pg_inherits join tables on inhparent = id) \
            select exists (select from pg_catalog.pg_trigger join tables on tgrelid = id \
            where not tgisinternal) \
            or exists (select from pg_catalog.pg_rewrite join tables on ev_class = id)";
        session
            .value("look for triggers", statement, &[&self.table])
            .await
    }

    /// The error if the server did not write all rows, but reported no error.
    fn refused(&self, session: &PgSession, written: (u64, u64), expected: (u64, u64)) -> Failure {
        let (table, server) = (&self.table, session.connector.address.server());
        let message = format!(
            "PostgreSQL at {server} did not write every batch to {table}: it added {} of {} new ones and updated {} of {} that differ",
            written.0, expected.0, written.1, expected.1
        );
        Failure::new(Kind::Output, message).hint(format!(
            "a trigger, a rule or row-level security of {table} may be the cause: `\\d {table}` in psql lists them"
        ))
    }

    /// Copies the buffered rows to the temporary table.
    async fn copy(&self, session: &PgSession, spool: &mut RowSpool) -> Result<(), PgError> {
        let doing = "copy batches";
        let statement = session.prepare(doing, &self.layout.copy()).await?;
        spool.rewind()?;
        while let Some(chunk) = spool.next()? {
            session.copy(doing, &statement, chunk).await?;
        }
        Ok(())
    }

    /// Updates the server's statistics of the temporary table, from a small sample: its size is what matters.
    /// Allows some memory for the comparison, unless the role, the database or the user has a limit: the server would otherwise sort
    /// both tables into many small files.
    async fn prepare_comparison(&self, session: &PgSession) -> Result<(), PgError> {
        let doing = "compare the batches";
        if session.connector.option("work_mem").is_none() {
            let memory = "select set_config('work_mem', greatest(setting::bigint, 65536) || 'kB', true) \
                 from pg_catalog.pg_settings where name = 'work_mem' \
                 and source in ('default', 'configuration file')";
            session.rows(doing, Limit::Short, memory, &[]).await?;
        }
        session.set("default_statistics_target", "10").await?;
        session.run(doing, Limit::Long, &Layout::analyze()).await
    }

    /// The error if the result of a transaction is unknown.
    fn uncertain(&self, cause: Failure) -> Failure {
        let message = format!(
            "the connection was lost during the commit to {}: it contains either all batches or none of them",
            self.table
        );
        Failure::new(Kind::Unavailable, message)
            .caused_by(cause)
            .hint("run the same command again: existing batches are not written twice")
    }
}

/// Asks the server for the result of a transaction, until it has ended.
async fn commit_outcome(
    connector: &Arc<Connector>,
    [number, started]: &TransactionId,
) -> Result<CommitOutcome, Failure> {
    let doing = "ask for the result of the last transaction";
    let begun = Instant::now();
    connector
        .retry(async || {
            let session = connector.connect().await?;
            let server: String = session.value(doing, SERVER_START, &[]).await?;
            if server != *started {
                return Ok(CommitOutcome::OtherServer);
            }
            loop {
                let statement = "select txid_status($1::bigint)";
                let answer = session.value(doing, statement, &[number]).await;
                let status: Option<String> = match answer {
                    Ok(status) => status,
                    // A server that does not know the transaction considers its ID to be in the future.
                    Err(error) if error.is(&SqlState::INVALID_PARAMETER_VALUE) => {
                        return Ok(CommitOutcome::Aborted);
                    }
                    Err(error) => return Err(error),
                };
                match status.as_deref() {
                    Some("committed") => return Ok(CommitOutcome::Committed),
                    Some("aborted") => return Ok(CommitOutcome::Aborted),
                    Some("in progress") if begun.elapsed() < connector.lock_limit() => {
                        tokio::time::sleep(PAUSE.min(connector.options.timeout)).await;
                    }
                    _ => return Ok(CommitOutcome::Unknown),
                }
            }
        })
        .await
}

/// Refuses a temporary table: it is dropped when the session ends.
fn refuse_temporary(table: &str) -> Result<(), Failure> {
    // PostgreSQL reserves these schema names.
    if !table.starts_with("\"pg_temp\".") && !table.starts_with("\"pg_temp_") {
        return Ok(());
    }
    Err(Failure::usage(
        format!("{table} is a temporary table, which PostgreSQL drops when the export ends"),
        "name a table in another schema: `table=schema.name`",
    ))
}

/// Returns the full name of a new table, quoted for SQL.
async fn new_table_name(session: &PgSession) -> Result<String, PgError> {
    let address = &session.connector.address;
    let table = &address.table;
    if table.schema.is_some() {
        return Ok(table.quoted());
    }
    let schema = session.value("look for a schema", "select current_schema()::text", &[]);
    let schema: Option<String> = schema.await?;
    let schema = schema.ok_or_else(|| {
        let message = format!(
            "PostgreSQL at {} has no schema on its search path to create a table in",
            address.server()
        );
        Failure::new(Kind::Output, message).hint("name one: `table=schema.name`")
    })?;
    Ok(format!("{}.{}", quoted(&schema), quoted(&table.name)))
}
