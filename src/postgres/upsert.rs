//! From the rows that wait to the table that is meant: a rehearsal before, one transaction after.

use std::error::Error;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::{BufMut as _, BytesMut};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};

use super::address::quoted;
use super::failure::{PgError, persist};
use super::locks::{AGAINST_READERS, AGAINST_ROWS, AGAINST_THE_TABLE, Locks};
use super::rows::{RowChunk, RowSpool};
use super::session::{Connector, Limit, Parameter, PgSession, Purpose};
use super::table::{self, Layout};
use crate::error::{Failure, Kind};

/// How often the server is asked what became of a transaction.
const PAUSE: Duration = Duration::from_millis(500);

/// Set once a transaction may have come into force.
static COMMITTING: AtomicBool = AtomicBool::new(false);

/// Tells whether the batches may be in the table by now.
pub(super) fn may_be_done() -> bool {
    COMMITTING.load(Ordering::SeqCst)
}

/// What became of the batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct UpsertCounts {
    pub(crate) inserted: u64,
    pub(crate) changed: u64,
    pub(crate) unchanged: u64,
}

/// The table that is meant.
pub(super) struct Upsert {
    layout: Layout,
    /// With its schema, for SQL.
    table: String,
    /// It was there at the start.
    exists: bool,
}

/// What became of a transaction whose end nobody heard.
enum CommitOutcome {
    Committed,
    Aborted,
    Unknown,
}

impl Upsert {
    /// Finds the table, or where it would be, and checks that batches fit. Goes through the statements once without
    /// a batch, in a transaction that is rolled back: rights that lack are found out now.
    pub(super) async fn rehearse(way: &Connector, layout: Layout) -> Result<Self, PgError> {
        let session = way.connect().await?;
        let rehearsed = Self::go_through(&session, layout).await;
        session.close().await;
        rehearsed
    }

    async fn go_through(session: &PgSession<'_>, mut layout: Layout) -> Result<Self, PgError> {
        session.begin(Purpose::Write).await?;
        let found = table::find(session, &session.way.address.table.quoted()).await?;
        let table = match &found {
            Some(found) => {
                found.check(session, &mut layout).await?;
                found.name.clone()
            }
            None => place(session).await?,
        };
        refuse_temporary(&table)?;
        let upsert = Self {
            layout,
            table,
            exists: found.is_some(),
        };
        match upsert.try_out(session).await {
            // Whoever holds the table is waited for when there is something to write.
            Err(trouble) if trouble.is(&SqlState::LOCK_NOT_AVAILABLE) => {
                log::info!("{} is locked by another session now", upsert.table);
            }
            other => other?,
        }
        Ok(upsert)
    }

    pub(super) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Has the server plan everything, which checks names, types and rights, and writes nothing but what is rolled
    /// back: two empty tables at most.
    async fn try_out(&self, session: &PgSession<'_>) -> Result<(), PgError> {
        let locks = Locks::new(session, &self.table).await?;
        let staging = self.layout.create_staging(self.present());
        session
            .run("make a temporary table", Limit::Long, &staging)
            .await?;
        if !self.exists {
            // Another export that makes it now has found out whether that works.
            if !self.try_turn(session).await? {
                return Ok(());
            }
            self.create(session, &locks).await?;
        }
        let statements = [
            self.layout.update(&self.table),
            Some(self.layout.insert(&self.table)),
        ];
        for statement in statements.into_iter().flatten() {
            let statement = format!("explain {statement}");
            session
                .run("write to the table", Limit::Long, &statement)
                .await?;
        }
        Ok(())
    }

    /// The table, where it was there at the start.
    fn present(&self) -> Option<&str> {
        self.exists.then_some(self.table.as_str())
    }

    /// What exports take turns by that make the same table.
    fn turn(&self) -> String {
        format!("trayscan {}", self.table)
    }

    /// Tells whether no other export makes the table now.
    async fn try_turn(&self, session: &PgSession<'_>) -> Result<bool, PgError> {
        let (doing, turn) = ("wait for another export", self.turn());
        let statement = "select pg_try_advisory_xact_lock(hashtext($1))";
        let parameters: [Parameter<'_>; 1] = [(&turn, Type::TEXT)];
        let rows = session
            .rows(doing, Limit::Short, statement, &parameters)
            .await?;
        session.value(doing, &rows, 0)
    }

    /// Makes the table where it is not there; one at a time, or two would make it at once.
    async fn create(&self, session: &PgSession<'_>, locks: &Locks<'_>) -> Result<(), PgError> {
        let (turn, create) = (self.turn(), self.layout.create(&self.table));
        locks
            .wait(&[], async || {
                let statement = "select pg_advisory_xact_lock(hashtext($1))";
                let parameters: [Parameter<'_>; 1] = [(&turn, Type::TEXT)];
                session
                    .rows(
                        "wait for another export",
                        Limit::Long,
                        statement,
                        &parameters,
                    )
                    .await?;
                session.run("create the table", Limit::Long, &create).await
            })
            .await
            .map_err(|mut trouble| {
                trouble.may_pass |= trouble.is_created_meanwhile();
                trouble
            })
    }

    /// Checks the table again after `create`: another session may have created it since the rehearsal.
    async fn check_again(&self, session: &PgSession<'_>) -> Result<(), PgError> {
        let Some(found) = table::find(session, &self.table).await? else {
            return Ok(());
        };
        let mut layout = self.layout.clone();
        found.check(session, &mut layout).await?;
        // The rows were not checked against such limits.
        if layout.fields.iter().all(|field| field.digits.is_none()) {
            return Ok(());
        }
        Err(Failure::new(
            Kind::Unavailable,
            format!(
                "another session created {} during the export, with columns that round numbers",
                self.table
            ),
        )
        .hint("run the same command again: it checks the numbers first")
        .into())
    }

    /// Brings the rows that wait into the table: all of them, or none.
    pub(super) async fn run(
        &self,
        way: &Connector,
        spool: &mut RowSpool,
    ) -> Result<UpsertCounts, Failure> {
        persist(way.reach.policy, async || self.attempt(way, spool).await).await
    }

    async fn attempt(
        &self,
        way: &Connector,
        spool: &mut RowSpool,
    ) -> Result<UpsertCounts, PgError> {
        let session = way.connect().await?;
        let (counts, number) = match self.prepare(&session, spool).await {
            Ok(prepared) => prepared,
            Err(trouble) => {
                session.close().await;
                return Err(trouble);
            }
        };
        COMMITTING.store(true, Ordering::SeqCst);
        let Err(trouble) = session.commit().await else {
            session.close().await;
            return Ok(counts);
        };
        drop(session);
        let fate = if trouble.is_refusal() {
            Ok(CommitOutcome::Aborted)
        } else {
            log::warn!("{}; asking the server what became of it", trouble.failure);
            fate(way, number).await
        };
        match fate {
            Ok(CommitOutcome::Committed) => Ok(counts),
            Ok(CommitOutcome::Aborted) => {
                COMMITTING.store(false, Ordering::SeqCst);
                Err(trouble)
            }
            Ok(CommitOutcome::Unknown) => Err(self.uncertain(trouble.failure).into()),
            Err(failure) => Err(self.uncertain(failure).into()),
        }
    }

    /// Does everything but the commit. Returns the number of the transaction as well: should the answer to the commit
    /// be lost, the server can be asked about it.
    async fn prepare(
        &self,
        session: &PgSession<'_>,
        spool: &mut RowSpool,
    ) -> Result<(UpsertCounts, i64), PgError> {
        session.begin(Purpose::Write).await?;
        let counts = self.load(session, spool).await?;
        let number = "select txid_current()";
        let number = session.rows("commit", Limit::Short, number, &[]).await?;
        Ok((counts, session.value("commit", &number, 0)?))
    }

    /// Copies the rows, compares them with those of the table, and writes where they differ.
    async fn load(
        &self,
        session: &PgSession<'_>,
        spool: &mut RowSpool,
    ) -> Result<UpsertCounts, PgError> {
        let table = &self.table;
        let locks = Locks::new(session, table).await?;
        let staging = self.layout.create_staging(self.present());
        locks
            .wait(AGAINST_READERS, async || {
                session
                    .run("make a temporary table", Limit::Long, &staging)
                    .await
            })
            .await?;
        self.copy(session, spool).await?;
        if !self.exists {
            self.create(session, &locks).await?;
            self.check_again(session).await?;
        }
        if self.compare(session, &locks).await? == (0, 0) {
            return Ok(UpsertCounts {
                unchanged: spool.rows,
                ..UpsertCounts::default()
            });
        }
        // Another export waits here for its turn: in each other's way, both might wait for ever. It also
        // makes the counts true. Readers read on.
        let lock = format!("lock table {table} in share row exclusive mode");
        locks
            .wait(AGAINST_THE_TABLE, async || {
                session.run("lock the table", Limit::Long, &lock).await
            })
            .await?;
        let (new, differing) = self.compare(session, &locks).await?;
        let doing = "write to the table";
        let changed = match self.layout.update(table) {
            Some(update) => {
                locks
                    .wait(AGAINST_ROWS, async || {
                        session.write(doing, &update, &[]).await
                    })
                    .await?
            }
            None => 0,
        };
        let insert = self.layout.insert(table);
        let inserted = locks
            .wait(AGAINST_ROWS, async || {
                session.write(doing, &insert, &[]).await
            })
            .await?;
        // A trigger may have put rows into a child of the table, and the server does not count those.
        if (inserted, changed) != (new, differing) && self.compare(session, &locks).await? != (0, 0)
        {
            return Err(self
                .refused(session, (inserted, changed), (new, differing))
                .into());
        }
        Ok(UpsertCounts {
            inserted: new,
            changed: differing,
            unchanged: spool.rows.saturating_sub(new + differing),
        })
    }

    /// Counts the rows that are new, and those that differ.
    async fn compare(
        &self,
        session: &PgSession<'_>,
        locks: &Locks<'_>,
    ) -> Result<(u64, u64), PgError> {
        let doing = "compare the batches";
        let compare = self.layout.compare(&self.table);
        let rows = locks
            .wait(AGAINST_READERS, async || {
                session.rows(doing, Limit::Long, &compare, &[]).await
            })
            .await?;
        let (new, differing): (i64, i64) = (
            session.value(doing, &rows, 0)?,
            session.value(doing, &rows, 1)?,
        );
        Ok((new.unsigned_abs(), differing.unsigned_abs()))
    }

    /// Says that the server did not write all rows, and reported no error.
    fn refused(&self, session: &PgSession<'_>, written: (u64, u64), wanted: (u64, u64)) -> Failure {
        let table = &self.table;
        Failure::new(
            Kind::Output,
            format!(
                "PostgreSQL at {} did not write every batch to {table}: it added {} of {} new ones and updated {} of {} that differ",
                session.way.address.server(), written.0, wanted.0, written.1, wanted.1
            ),
        )
        .hint(format!(
            "a trigger, a rule or row-level security of {table} may be why: `\\d {table}` in psql lists them"
        ))
    }

    /// Copies the rows that wait into a table of the transaction.
    async fn copy(&self, session: &PgSession<'_>, spool: &mut RowSpool) -> Result<(), PgError> {
        let doing = "copy batches";
        let fields = &self.layout.fields;
        let statement = self.layout.copy();
        let mut pieces = spool.read(fields.len())?;
        while let Some(piece) = pieces.next()? {
            let RowChunk { rows, columns } = &piece;
            let mut arrays = Vec::new();
            for (field, cells) in fields.iter().zip(columns) {
                let (cell, array) = field.types();
                arrays.push((ColumnArray(cell, *rows, cells), array));
            }
            let parameters: Vec<Parameter<'_>> = arrays
                .iter()
                .map(|(cells, array)| (cells as &(dyn ToSql + Sync), array.clone()))
                .collect();
            session.write(doing, &statement, &parameters).await?;
        }
        session.run(doing, Limit::Long, &Layout::analyze()).await
    }

    /// Says that nobody knows how a transaction ended.
    fn uncertain(&self, cause: Failure) -> Failure {
        Failure::new(
            Kind::Unavailable,
            format!(
                "the connection was lost while everything was taken over into {}: it has all of it, or nothing",
                self.table
            ),
        )
        .caused_by(cause)
        .hint("run the same command again: what is there already is not written twice")
    }
}

/// Asks the server how the transaction of this number ended, for as long as it has not.
async fn fate(way: &Connector, number: i64) -> Result<CommitOutcome, Failure> {
    let doing = "ask about the last transaction";
    let begun = Instant::now();
    persist(way.reach.policy, async || {
        let session = way.connect().await?;
        loop {
            let parameters: [Parameter<'_>; 1] = [(&number, Type::INT8)];
            let asked = session
                .rows(doing, Limit::Short, "select txid_status($1)", &parameters)
                .await;
            let status: Option<String> = match asked {
                Ok(rows) => session.value(doing, &rows, 0)?,
                // It lies in the future of a server that has never heard of it.
                Err(trouble) if trouble.is(&SqlState::INVALID_PARAMETER_VALUE) => {
                    return Ok(CommitOutcome::Aborted);
                }
                Err(trouble) => return Err(trouble),
            };
            match status.as_deref() {
                Some("committed") => return Ok(CommitOutcome::Committed),
                Some("aborted") => return Ok(CommitOutcome::Aborted),
                Some("in progress") if begun.elapsed() < way.lock_limit() => {
                    tokio::time::sleep(PAUSE.min(way.reach.timeout)).await;
                }
                _ => return Ok(CommitOutcome::Unknown),
            }
        }
    })
    .await
}

/// The cells of a column, sent as an array of this type.
#[derive(Debug)]
struct ColumnArray<'a>(Type, u32, &'a [u8]);

impl ToSql for ColumnArray<'_> {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        let Self(cell, rows, cells) = self;
        // One dimension, perhaps with nulls, counted from 1.
        for number in [1, 1, cell.oid(), *rows, 1] {
            out.put_u32(number);
        }
        out.put_slice(cells);
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// Refuses a table that is gone when the session ends, which is before anybody can read it.
fn refuse_temporary(table: &str) -> Result<(), Failure> {
    // No other schema may be called so.
    if !table.starts_with("\"pg_temp\".") && !table.starts_with("\"pg_temp_") {
        return Ok(());
    }
    Err(Failure::new(
        Kind::Usage,
        format!("{table} is a temporary table, which PostgreSQL drops when the export ends"),
    )
    .hint("name a table in another schema: `table=schema.name`"))
}

/// Says where the table will be.
async fn place(session: &PgSession<'_>) -> Result<String, PgError> {
    let (doing, address) = ("look for a schema", &session.way.address);
    let table = &address.table;
    if table.schema.is_some() {
        return Ok(table.quoted());
    }
    let statement = "select current_schema()::text";
    let rows = session.rows(doing, Limit::Short, statement, &[]).await?;
    let schema: Option<String> = session.value(doing, &rows, 0)?;
    let schema = schema.ok_or_else(|| {
        Failure::new(
            Kind::Output,
            format!(
                "PostgreSQL at {} has no schema on its search path to make a table in",
                address.server()
            ),
        )
        .hint("name one: `table=schema.name`")
    })?;
    Ok(format!("{}.{}", quoted(&schema), quoted(&table.name)))
}
