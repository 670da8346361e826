//! Waits for locks of other sessions, with a message and a limit.

use std::time::Duration;

use tokio_postgres::error::SqlState;

use super::failure::{self, PgError};
use super::session::{Limit, PgSession, milliseconds};
use crate::error::{Failure, Kind};
use crate::terminal;

/// How long to wait for a lock before logging a message.
const QUIET_WAIT: Duration = Duration::from_secs(2);

const SETTING: &str = "lock_timeout";

/// Lock modes that conflict with `lock table … in share row exclusive mode`.
pub(super) const AGAINST_THE_TABLE: &[&str] = &[
    "RowExclusiveLock",
    "ShareUpdateExclusiveLock",
    "ShareLock",
    "ShareRowExclusiveLock",
    "ExclusiveLock",
    "AccessExclusiveLock",
];
/// Lock modes that conflict with changing rows of a table locked like that.
pub(super) const AGAINST_ROWS: &[&str] = &["RowShareLock"];
/// Lock modes that conflict with reading.
pub(super) const AGAINST_READERS: &[&str] = &["AccessExclusiveLock"];

/// The locks of one transaction.
pub(super) struct Locks<'a> {
    session: &'a PgSession,
    /// The name of the table, quoted for SQL.
    table: &'a str,
    /// The user's own `lock_timeout`; `None` if not set.
    own: Option<String>,
}

impl<'a> Locks<'a> {
    /// Sets a lock timeout for the current transaction of `session`.
    pub(super) async fn new(session: &'a PgSession, table: &'a str) -> Result<Self, PgError> {
        // A pooler may not have passed it on.
        if let Some(given) = session.connector.option(SETTING) {
            session.set(SETTING, &given).await?;
        }
        let statement = "select current_setting('lock_timeout')";
        let current: String = session.value("begin", statement, &[]).await?;
        // Zero is no limit, but each statement has one.
        let own = (current != "0").then_some(current);
        let locks = Self {
            session,
            table,
            own,
        };
        locks.use_short_timeout().await?;
        Ok(locks)
    }

    /// Sets a short timeout for the next lock, so that a longer wait is logged first.
    async fn use_short_timeout(&self) -> Result<(), PgError> {
        if self.own.is_some() {
            return Ok(());
        }
        let short = QUIET_WAIT.min(self.session.connector.lock_limit() / 2);
        self.session.set(SETTING, &milliseconds(short)).await
    }

    /// Runs `work`, which needs a lock that conflicts with `modes`. Logs a message if it has to wait.
    pub(super) async fn wait<T>(
        &self,
        modes: &[&str],
        work: impl AsyncFn() -> Result<T, PgError>,
    ) -> Result<T, PgError> {
        let session = self.session;
        let savepoint = "savepoint trayscan_lock";
        session.run("begin", Limit::Short, savepoint).await?;
        match work().await {
            Err(error) if error.is(&SqlState::LOCK_NOT_AVAILABLE) => {}
            other => return other,
        }
        let back = "rollback to savepoint trayscan_lock";
        session.run("roll back", Limit::Short, back).await?;
        let holders = self.holders(modes).await?;
        let limit = session.connector.lock_limit();
        if let Some(own) = &self.own {
            return Err(self.not_released(&holders, own));
        }
        session.set(SETTING, &milliseconds(limit)).await?;
        let seconds = limit.as_secs_f64();
        terminal::note(&format!(
            "waiting for {}, which is locked by {holders}; giving up after {seconds:.0} s",
            self.table
        ));
        match work().await {
            Err(error) if error.is(&SqlState::LOCK_NOT_AVAILABLE) => {
                session.run("roll back", Limit::Short, back).await?;
                let holders = self.holders(modes).await?;
                Err(self.not_released(&holders, &format!("{seconds:.0} s")))
            }
            Err(other) => Err(other),
            Ok(done) => {
                self.use_short_timeout().await?;
                Ok(done)
            }
        }
    }

    /// The error for a lock that was not released in time.
    fn not_released(&self, holders: &str, waited: &str) -> PgError {
        let server = self.session.connector.address.server();
        let own = if self.own.is_some() {
            "; `lock_timeout` does not allow a longer wait"
        } else {
            ""
        };
        let message = format!("{} of PostgreSQL at {server} is locked", self.table);
        Failure::new(Kind::Unavailable, message)
            .caused_by(anyhow::anyhow!(
                "it is locked by {holders}, and was not released within {waited}{own}"
            ))
            .hint("run the same command again when that session has ended its transaction")
            .into()
    }

    /// Describes the sessions that hold locks of these modes on the table, as far as the server shows them.
    async fn holders(&self, modes: &[&str]) -> Result<String, PgError> {
        let statement = format!(
            "select case when l.pid is null then 'a prepared transaction' else \
             'session ' || l.pid || coalesce(' (' || nullif(concat_ws(', ', \
             coalesce(nullif(a.application_name, ''), a.backend_type), \
             'since ' || to_char(a.xact_start at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')), '') || ')', '') end \
             from pg_catalog.pg_locks l left join pg_catalog.pg_stat_activity a on a.pid = l.pid \
             where l.locktype = 'relation' and l.relation = to_regclass($1) and l.granted \
             and l.database = (select oid from pg_catalog.pg_database where datname = current_database()) \
             and l.pid is distinct from pg_backend_pid() and l.mode = any (string_to_array('{}', ' ')) \
             group by l.pid, a.application_name, a.backend_type, a.xact_start \
             order by a.xact_start limit 3",
            modes.join(" ")
        );
        let doing = "look for the holder of a lock";
        let session = self.session;
        let rows = session
            .rows(doing, Limit::Short, &statement, &[self.table])
            .await?;
        let holders: Result<Vec<&str>, _> = rows.iter().map(|row| row.try_get(0)).collect();
        let address = &session.connector.address;
        let holders = holders.map_err(|error| failure::of(address, doing, &error))?;
        Ok(match &holders[..] {
            [] => "another session".to_owned(),
            holders => holders.join(" and "),
        })
    }
}
