//! From the table that rows wait in to the table that is meant: a rehearsal before, one transaction after.

use std::sync::atomic::{AtomicBool, Ordering};

use postgres::{Client, GenericClient, Transaction};

use super::address::Address;
use super::inspect;
use super::layout::{Layout, STAGING};
use super::{failure, quoted};
use crate::error::{Failure, Kind};

/// Set once a transaction may have come into force.
static COMMITTING: AtomicBool = AtomicBool::new(false);

/// Tells whether the batches may be in the table by now.
pub(super) fn may_be_done() -> bool {
    COMMITTING.load(Ordering::SeqCst)
}

/// What became of the batches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) inserted: u64,
    pub(crate) changed: u64,
    pub(crate) unchanged: u64,
}

/// The table that is meant.
pub(super) struct Upsert {
    address: Address,
    layout: Layout,
    /// With its schema, for SQL.
    table: String,
    /// It was there at the start.
    exists: bool,
}

impl Upsert {
    /// Finds the table, or where it would be, and checks that batches fit; makes the table that they wait
    /// in, and goes through everything once without a batch: rights that lack are found out now.
    pub(super) fn prepare(
        client: &mut Client,
        address: &Address,
        mut layout: Layout,
    ) -> Result<Self, Failure> {
        let doing =
            |doing: &'static str| move |error: postgres::Error| failure::of(address, doing, &error);
        let found = inspect::find(client, address)?;
        let table = match &found {
            Some(found) => {
                found.check(client, address, &mut layout)?;
                found.name.clone()
            }
            None => place(client, address)?,
        };
        let staging = layout.create_staging(found.is_some().then_some(table.as_str()));
        client
            .batch_execute(&staging)
            .map_err(doing("make a temporary table"))?;
        let upsert = Self {
            address: address.clone(),
            layout,
            table,
            exists: found.is_some(),
        };
        let mut rehearsal = client.transaction().map_err(doing("begin"))?;
        upsert.create(&mut rehearsal)?;
        let statement = upsert.layout.upsert(&upsert.table);
        rehearsal
            .execute(statement.as_str(), &[])
            .map_err(doing("write to the table"))?;
        rehearsal.rollback().map_err(doing("go back"))?;
        Ok(upsert)
    }

    pub(super) fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Makes the table where it is not there; one at a time, or two would make it at once.
    fn create(&self, transaction: &mut Transaction<'_>) -> Result<(), Failure> {
        if self.exists {
            return Ok(());
        }
        let key = format!("trayscan {}", self.table);
        let locked = transaction.execute("select pg_advisory_xact_lock(hashtext($1))", &[&key]);
        locked.map_err(|error| failure::of(&self.address, "wait for another export", &error))?;
        transaction
            .batch_execute(&self.layout.create(&self.table))
            .map_err(|error| failure::of(&self.address, "create the table", &error))
    }

    /// Takes the rows that wait over into the table: all of them, or none.
    pub(super) fn run(&self, client: &mut Client) -> Result<Counts, Failure> {
        let address = &self.address;
        let doing =
            |doing: &'static str| move |error: postgres::Error| failure::of(address, doing, &error);
        let analyzed = client.batch_execute(&format!("analyze {STAGING}"));
        analyzed.map_err(doing("look over the batches"))?;
        let mut transaction = client.transaction().map_err(doing("begin"))?;
        self.create(&mut transaction)?;
        // Another export waits here for its turn: in each other's way, both might wait for ever. It also
        // makes the counts true. Readers read on.
        let table = &self.table;
        transaction
            .batch_execute(&format!("lock table {table} in share row exclusive mode"))
            .map_err(doing("lock the table"))?;
        let staged = count(&mut transaction, &format!("select count(*) from {STAGING}"));
        let staged = staged.map_err(doing("count"))?;
        let key = quoted("batch_id");
        let present = format!(
            "select count(*) from {STAGING} s where exists (select from {table} t where t.{key} = s.{key})"
        );
        let present = count(&mut transaction, &present).map_err(doing("count"))?;
        let written = transaction.execute(self.layout.upsert(table).as_str(), &[]);
        let written = written.map_err(doing("write to the table"))?;
        COMMITTING.store(true, Ordering::SeqCst);
        transaction
            .commit()
            .map_err(|error| self.uncertain(&error))?;
        let inserted = staged.saturating_sub(present);
        let changed = written.saturating_sub(inserted);
        Ok(Counts {
            inserted,
            changed,
            unchanged: present.saturating_sub(changed),
        })
    }

    /// Says that a transaction did not come to its end, or that nobody knows.
    fn uncertain(&self, error: &postgres::Error) -> Failure {
        if error.as_db_error().is_some() {
            COMMITTING.store(false, Ordering::SeqCst);
            return failure::of(&self.address, "commit", error);
        }
        let failure = failure::of(&self.address, "commit", error);
        Failure::new(
            Kind::Output,
            format!(
                "the connection was lost while everything was taken over into {}: it has all of it, or nothing",
                self.table
            ),
        )
        .caused_by(failure)
        .hint("run the same command again: what is there already is not written twice")
    }
}

fn count(client: &mut impl GenericClient, statement: &str) -> Result<u64, postgres::Error> {
    let number: i64 = client.query_one(statement, &[])?.try_get(0)?;
    Ok(number.unsigned_abs())
}

/// Says where the table will be.
fn place(client: &mut Client, address: &Address) -> Result<String, Failure> {
    let table = &address.table;
    if table.schema.is_some() {
        return Ok(table.quoted());
    }
    let row = client.query_one("select current_schema()::text", &[]);
    let schema: Result<Option<String>, _> = row.and_then(|row| row.try_get(0));
    let schema = schema.map_err(|error| failure::of(address, "look for a schema", &error))?;
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
