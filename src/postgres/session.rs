//! Sessions: a connection to the server, with a timeout for every response.

use std::cell::Cell;
use std::error::Error as _;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::SinkExt as _;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::config::{ChannelBinding, Config, SslMode};
use tokio_postgres::error::SqlState;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::types::{FromSqlOwned, ToSql, Type};
use tokio_postgres::{AsyncMessage, Client, Error, Row, RowStream, Socket, Statement};

use super::address::{Host, Security, TableAddress};
use super::failure::{self, PgError};
use super::tls;
use crate::client::retry::{Retry, RetryHint};
use crate::client::{self, ClientOptions};
use crate::error::{Failure, Kind};

/// How long to wait for a session to close.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// How much longer than for a lock to wait for a response, so that the server can report the lock timeout
/// first.
const GRACE: Duration = Duration::from_secs(1);
/// After this time, the server itself stops statements that the client no longer waits for.
const BACKSTOP: Duration = Duration::from_secs(5);
/// The longest timeout that PostgreSQL accepts.
const LONGEST: Duration = Duration::from_millis(i32::MAX as u64);

/// How many names to try for a prepared statement.
const MAX_NAMES: u32 = 1000;

/// How long a response may take.
#[derive(Clone, Copy, Debug)]
pub(super) enum Limit {
    /// `--timeout`, for fast statements.
    Short,
    /// Ten times as long, for statements that move rows or wait for a lock.
    Long,
}

/// The purpose of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Write,
    Read,
}

/// Opens sessions with an address and connection settings.
pub(super) struct Connector {
    pub(super) address: TableAddress,
    pub(super) options: ClientOptions,
}

impl Connector {
    pub(super) fn limit(&self, limit: Limit) -> Duration {
        match limit {
            Limit::Short => self.options.timeout,
            Limit::Long => self.lock_limit().saturating_add(GRACE),
        }
    }

    /// Returns how long to wait for a lock.
    pub(super) fn lock_limit(&self) -> Duration {
        self.options.timeout.saturating_mul(10)
    }

    /// Returns the value of a setting in the user's own options.
    pub(super) fn option(&self, name: &str) -> Option<String> {
        option_value(self.address.options.as_deref()?, name)
    }

    /// Runs `work` until it succeeds or its error is final.
    pub(super) async fn retry<T>(
        &self,
        mut work: impl AsyncFnMut() -> Result<T, PgError>,
    ) -> Result<T, Failure> {
        let mut retry = Retry::new(self.options.retry, None);
        loop {
            let PgError {
                failure,
                is_transient,
                ..
            } = match work().await {
                Ok(done) => return Ok(done),
                Err(error) => error,
            };
            let cause = failure.source();
            let cause = cause.map_or_else(String::new, |cause| format!(": {cause}"));
            let hint = is_transient.then(RetryHint::default);
            if !retry.again(hint, &format!("{failure}{cause}")).await {
                return Err(failure);
            }
        }
    }

    /// Opens a session.
    pub(super) async fn connect(self: &Arc<Self>) -> Result<PgSession, PgError> {
        let address = &self.address;
        let mut config = Config::new();
        let wait = self.limit(Limit::Short);
        let connect_timeout = if address.connect_timeout.is_zero() {
            wait
        } else {
            wait.min(address.connect_timeout)
        };
        config
            .port(address.port)
            .user(&address.user)
            .dbname(&address.database)
            .application_name(&address.application_name)
            .channel_binding(address.channel_binding)
            .connect_timeout(connect_timeout)
            // Detects a server that has disappeared.
            .tcp_user_timeout(wait)
            .keepalives_idle(wait.clamp(Duration::from_secs(1), Duration::from_secs(60)));
        if let Some(password) = &address.password {
            config.password(password.expose());
        }
        if let Some(options) = &address.options {
            config.options(options);
        }
        let security = match &address.host {
            Host::Name(name) => {
                config.host(name);
                address.security
            }
            Host::Socket(folder) => {
                #[cfg(unix)]
                config.host_path(folder);
                #[cfg(not(unix))]
                config.host(folder.to_string_lossy());
                Security::Disable
            }
        };
        config.ssl_mode(match security {
            Security::Disable => SslMode::Disable,
            // Channel binding needs TLS.
            Security::Prefer if address.channel_binding != ChannelBinding::Require => {
                SslMode::Prefer
            }
            Security::Prefer | Security::Require | Security::VerifyCa | Security::VerifyFull => {
                SslMode::Require
            }
        });
        if security == Security::Disable {
            self.connect_with(&config, tokio_postgres::NoTls).await
        } else {
            let tls = tls::connector(address, self.options.ca_cert.as_ref())?;
            self.connect_with(&config, tls).await
        }
    }

    async fn connect_with<T>(
        self: &Arc<Self>,
        config: &Config,
        tls: T,
    ) -> Result<PgSession, PgError>
    where
        T: MakeTlsConnect<Socket>,
        T::Stream: Send + 'static,
    {
        let wait = self.limit(Limit::Short);
        let Ok(connected) = timeout(wait, config.connect(tls)).await else {
            let cause = format!("no answer within {:.1} s", wait.as_secs_f64());
            let failure = failure::unreachable(&self.address, &cause);
            return Err(PgError::transient(failure));
        };
        let (client, mut connection) =
            connected.map_err(|error| failure::connecting(&self.address, &error))?;
        let driver = tokio::spawn(async move {
            loop {
                match poll_fn(|context| connection.poll_message(context)).await {
                    // Notices such as "already exists" are not important.
                    Some(Ok(AsyncMessage::Notice(notice))) => {
                        log::debug!("PostgreSQL: {}", notice.message());
                    }
                    Some(Ok(_)) => {}
                    Some(Err(error)) => return Some(error),
                    None => return None,
                }
            }
        });
        Ok(PgSession {
            connector: Arc::clone(self),
            client,
            driver: Cell::new(Some(Driver(driver))),
            is_open: Cell::new(false),
        })
    }
}

/// A session on the server. Dropping it closes the connection and rolls back.
pub(super) struct PgSession {
    pub(super) connector: Arc<Connector>,
    client: Client,
    driver: Cell<Option<Driver>>,
    /// Whether a transaction is open and the connection is usable.
    is_open: Cell<bool>,
}

/// Transfers data between server and client; returns why it ended early. Dropping it closes the connection
/// immediately.
struct Driver(JoinHandle<Option<Error>>);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl PgSession {
    /// Begins a transaction with its own timeouts, unless the user has set others.
    pub(super) async fn begin(&self, purpose: Purpose) -> Result<(), PgError> {
        let mode = match purpose {
            Purpose::Read => "isolation level repeatable read, read only",
            // After waiting for a lock, changes of other sessions must be visible.
            Purpose::Write => "isolation level read committed",
        };
        self.run("begin", Limit::Short, &format!("begin {mode}"))
            .await?;
        self.is_open.set(true);
        let limit = self.connector.limit(Limit::Long).saturating_add(BACKSTOP);
        // Rows are read as fast as the caller takes them.
        let statement = if purpose == Purpose::Read {
            Duration::ZERO
        } else {
            limit
        };
        let mut values = Vec::new();
        for (name, ours) in [
            ("statement_timeout", milliseconds(statement)),
            ("idle_in_transaction_session_timeout", milliseconds(limit)),
            ("transaction_timeout", milliseconds(Duration::ZERO)),
            // Servers from version 14 on stop statements whose client has disconnected.
            ("client_connection_check_interval", "10s".to_owned()),
            // The names of types are compared as they are.
            ("quote_all_identifiers", "off".to_owned()),
        ] {
            let wanted = self.connector.option(name).unwrap_or(ours);
            values.push(format!("('{name}', '{}')", wanted.replace('\'', "''")));
        }
        let statement = format!(
            "select set_config(name, wanted, true) from pg_catalog.pg_settings \
             join (values {}) as limits (limit_name, wanted) on name = limit_name where source <> 'client' \
             and (name <> 'client_connection_check_interval' or version() like '%linux%')",
            values.join(", ")
        );
        self.rows("begin", Limit::Short, &statement, &[])
            .await
            .map(drop)
    }

    pub(super) async fn commit(&self) -> Result<(), PgError> {
        self.is_open.set(false);
        self.run("commit", Limit::Short, "commit").await
    }

    /// Changes a setting until the transaction ends or is rolled back to a savepoint.
    pub(super) async fn set(&self, name: &str, value: &str) -> Result<(), PgError> {
        let statement = "select set_config($1, $2, true)";
        self.rows("begin", Limit::Short, statement, &[name, value])
            .await
            .map(drop)
    }

    /// Runs a statement without a result.
    pub(super) async fn run(
        &self,
        doing: &'static str,
        limit: Limit,
        statement: &str,
    ) -> Result<(), PgError> {
        self.within(doing, limit, self.client.batch_execute(statement))
            .await
    }

    /// Runs a query whose parameters are texts.
    pub(super) async fn rows(
        &self,
        doing: &'static str,
        limit: Limit,
        statement: &str,
        parameters: &[&str],
    ) -> Result<Vec<Row>, PgError> {
        let typed = |text| (text as &(dyn ToSql + Sync), Type::TEXT);
        let parameters: Vec<_> = parameters.iter().map(typed).collect();
        let query = self.client.query_typed(statement, &parameters);
        self.within(doing, limit, query).await
    }

    /// Runs a query, and returns the rows as a stream.
    pub(super) async fn stream(
        &self,
        doing: &'static str,
        statement: &str,
    ) -> Result<RowStream, PgError> {
        let none: [(&(dyn ToSql + Sync), Type); 0] = [];
        let query = self.client.query_typed_raw(statement, none);
        self.within(doing, Limit::Long, query).await
    }

    /// Runs a statement that changes rows, and returns their number.
    pub(super) async fn write(&self, doing: &'static str, statement: &str) -> Result<u64, PgError> {
        let query = self.client.execute_typed(statement, &[]);
        self.within(doing, Limit::Long, query).await
    }

    /// Prepares a statement in the current transaction. Must be dropped, which closes it, before that ends.
    ///
    /// Its name is a number that the client counts up. A pooler may have left a statement of that name from
    /// another program in the session: then the next name is tried.
    pub(super) async fn prepare(
        &self,
        doing: &'static str,
        statement: &str,
    ) -> Result<Statement, PgError> {
        self.run(doing, Limit::Short, "savepoint trayscan_name")
            .await?;
        let mut names = 1;
        loop {
            let prepare = self.client.prepare(statement);
            match self.within(doing, Limit::Short, prepare).await {
                Err(error) if error.is(&SqlState::DUPLICATE_PSTATEMENT) && names < MAX_NAMES => {}
                other => return other,
            }
            names += 1;
            let back = "rollback to savepoint trayscan_name";
            self.run(doing, Limit::Short, back).await?;
        }
    }

    /// Runs a prepared `copy … from stdin` with this input.
    pub(super) async fn copy(
        &self,
        doing: &'static str,
        statement: &Statement,
        input: Vec<u8>,
    ) -> Result<(), PgError> {
        let copy = async {
            let mut sink = pin!(self.client.copy_in(statement).await?);
            sink.send(Bytes::from(input)).await?;
            sink.finish().await.map(drop)
        };
        self.within(doing, Limit::Long, copy).await
    }

    /// Waits for a response up to the limit.
    pub(super) async fn within<T>(
        &self,
        doing: &'static str,
        limit: Limit,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, PgError> {
        let address = &self.connector.address;
        let wait = self.connector.limit(limit);
        let error = match timeout(wait, work).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => error,
            Err(_) => {
                self.is_open.set(false);
                let failure = failure::timed_out(address, doing, wait);
                return Err(match limit {
                    Limit::Short => PgError::transient(failure),
                    // A retry would take as long again.
                    Limit::Long => failure.into(),
                });
            }
        };
        // The connection task knows why the connection was closed.
        let driver = error.is_closed().then(|| self.driver.take()).flatten();
        if let Some(mut driver) = driver
            && let Ok(Ok(Some(cause))) = timeout(CLOSE_TIMEOUT, &mut driver.0).await
        {
            return Err(failure::of(address, doing, &cause));
        }
        Err(failure::of(address, doing, &error))
    }

    /// Runs a fast query, and returns the only value.
    pub(super) async fn value<T: FromSqlOwned>(
        &self,
        doing: &'static str,
        statement: &str,
        parameters: &[&str],
    ) -> Result<T, PgError> {
        let rows = self.rows(doing, Limit::Short, statement, parameters);
        self.cell(doing, &rows.await?, 0)
    }

    /// Returns one value of the first row.
    pub(super) fn cell<T: FromSqlOwned>(
        &self,
        doing: &'static str,
        rows: &[Row],
        column: usize,
    ) -> Result<T, PgError> {
        let row = rows.first().ok_or_else(|| {
            let message = format!("cannot {doing}: PostgreSQL returned no row");
            Failure::new(Kind::Internal, message)
        })?;
        row.try_get(column)
            .map_err(|error| failure::of(&self.connector.address, doing, &error))
    }

    /// Closes the session. An open transaction is rolled back: a pooler would otherwise have to discard the
    /// server connection.
    pub(super) async fn close(self) {
        let Self {
            client,
            driver,
            is_open,
            ..
        } = self;
        if is_open.get() {
            let _ = timeout(CLOSE_TIMEOUT, client.batch_execute("rollback")).await;
        }
        drop(client);
        if let Some(mut driver) = driver.take() {
            let _ = timeout(CLOSE_TIMEOUT, &mut driver.0).await;
        }
    }
}

/// Formats a duration for a setting of the server.
pub(super) fn milliseconds(duration: Duration) -> String {
    format!("{}ms", duration.min(LONGEST).as_millis())
}

/// Runs `work`, and blocks this thread until it ends.
pub(super) fn wait<T>(work: impl Future<Output = T>) -> T {
    client::wait(&Handle::current(), work)
}

/// Returns the value of a setting in `options`, such as `-c statement_timeout=5s`; the last one counts.
fn option_value(options: &str, name: &str) -> Option<String> {
    let words = split_options(options);
    let mut words = words.iter().map(String::as_str);
    let mut found = None;
    while let Some(word) = words.next() {
        let setting = match word.strip_prefix("--") {
            Some(setting) => Some(setting),
            None if word == "-c" => words.next(),
            None => word.strip_prefix("-c"),
        };
        if let Some((key, value)) = setting.and_then(|setting| setting.split_once('='))
            && key.replace('-', "_").eq_ignore_ascii_case(name)
        {
            found = Some(value.to_owned());
        }
    }
    found
}

/// Splits at whitespace; a backslash escapes the next character.
fn split_options(options: &str) -> Vec<String> {
    let (mut words, mut word) = (Vec::new(), String::new());
    let mut characters = options.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => word.extend(characters.next()),
            blank if blank.is_ascii_whitespace() => words.push(std::mem::take(&mut word)),
            other => word.push(other),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_found_in_every_notation() {
        for (options, expected) in [
            ("-c statement_timeout=5s", Some("5s")),
            ("-cstatement_timeout=5000", Some("5000")),
            ("--statement-timeout=5s", Some("5s")),
            ("-c Statement_Timeout=5\\ s -c work_mem=1GB", Some("5 s")),
            ("-c statement_timeout=5s -c statement_timeout=0", Some("0")),
            ("-c lock_timeout=5s", None),
            ("-c statement_timeout", None),
            ("", None),
        ] {
            let found = option_value(options, "statement_timeout");
            assert_eq!(found.as_deref(), expected, "{options}");
        }
    }
}
