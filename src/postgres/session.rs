//! A session on the server: a connection, and a limit to the wait for every answer.

use std::cell::Cell;
use std::future::poll_fn;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::config::{Config, SslMode};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{AsyncMessage, Client, Error, Row, RowStream, Socket};

use super::address::TableAddress;
use super::address::{Host, Security};
use super::failure::{self, PgError};
use super::tls::Tls;
use crate::client::ClientOptions;
use crate::client::retry::RetryPolicy;
use crate::error::{Failure, Kind};

/// How long a session that ends is waited for.
const FAREWELL: Duration = Duration::from_secs(1);
/// How much longer than for a lock an answer is waited for, so that the server can say that there is no lock.
const GRACE: Duration = Duration::from_secs(1);
/// When the server ends by itself what nobody waits for any more.
const BACKSTOP: Duration = Duration::from_secs(5);
/// The most that PostgreSQL takes for such a limit.
const LONGEST: Duration = Duration::from_millis(i32::MAX as u64);

/// A parameter of a statement, and its type.
pub(super) type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// How a server is reached: whom to trust, how long to wait for an answer, how often to try again.
#[derive(Clone)]
pub(crate) struct Reach {
    /// An authority to trust beside the system's.
    ca_cert: Option<PathBuf>,
    pub(super) timeout: Duration,
    pub(super) policy: RetryPolicy,
}

impl Reach {
    pub(crate) fn new(manners: &ClientOptions) -> Self {
        Self {
            ca_cert: manners.ca_cert.as_ref().map(|path| path.value.clone()),
            timeout: manners.timeout.value,
            policy: RetryPolicy {
                retries: manners.retries.value,
                wait: manners.retry_wait.value,
            },
        }
    }
}

/// How long an answer may take.
#[derive(Clone, Copy, Debug)]
pub(super) enum Limit {
    /// `--timeout`, for what is done at once.
    Short,
    /// Ten times as long, for what moves rows or waits for a lock.
    Long,
}

/// What a transaction is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Write,
    Read,
}

/// Where a session goes, and how.
#[derive(Clone)]
pub(super) struct Connector {
    pub(super) address: TableAddress,
    pub(super) reach: Reach,
}

impl Connector {
    pub(super) fn limit(&self, limit: Limit) -> Duration {
        match limit {
            Limit::Short => self.reach.timeout,
            Limit::Long => self.lock_limit().saturating_add(GRACE),
        }
    }

    /// How long a lock is waited for.
    pub(super) fn lock_limit(&self) -> Duration {
        self.reach.timeout.saturating_mul(10)
    }

    /// Returns what the user's own options say of a setting.
    pub(super) fn option(&self, name: &str) -> Option<String> {
        let options = self.address.options.as_deref()?;
        option_value(options, name)
    }

    /// Opens a session.
    pub(super) async fn connect(&self) -> Result<PgSession<'_>, PgError> {
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
            .connect_timeout(connect_timeout)
            // A server that has vanished is noticed while it is waited for.
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
                config.host(&folder.to_string_lossy());
                Security::Disable
            }
        };
        config.ssl_mode(match security {
            Security::Disable => SslMode::Disable,
            Security::Prefer => SslMode::Prefer,
            Security::Require | Security::VerifyCa | Security::VerifyFull => SslMode::Require,
        });
        if security == Security::Disable {
            self.connect_with(&config, tokio_postgres::NoTls).await
        } else {
            let tls = Tls::new(address, self.reach.ca_cert.as_deref())?;
            self.connect_with(&config, tls).await
        }
    }

    async fn connect_with<T>(&self, config: &Config, tls: T) -> Result<PgSession<'_>, PgError>
    where
        T: MakeTlsConnect<Socket>,
        T::Stream: Send + 'static,
    {
        let wait = self.limit(Limit::Short);
        let Ok(connected) = timeout(wait, config.connect(tls)).await else {
            let cause = format!("no answer within {:.1} s", wait.as_secs_f64());
            let failure = failure::unreachable(&self.address, &cause);
            return Err(PgError::passing(failure));
        };
        let (client, mut connection) =
            connected.map_err(|error| failure::connecting(&self.address, &error))?;
        let driver = tokio::spawn(async move {
            loop {
                match poll_fn(|context| connection.poll_message(context)).await {
                    // What was created already is no news.
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
            way: self,
            client,
            driver: Cell::new(Some(Driver(driver))),
            is_open: Cell::new(false),
        })
    }
}

/// A session on the server. One that is dropped ends, and what was not committed with it.
pub(super) struct PgSession<'a> {
    pub(super) way: &'a Connector,
    client: Client,
    driver: Cell<Option<Driver>>,
    /// There is a transaction, and the server listens.
    is_open: Cell<bool>,
}

/// Moves bytes between server and client; returns why it ended too early. Dropped, it closes the connection, whatever
/// is still to be answered.
struct Driver(JoinHandle<Option<Error>>);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl PgSession<'_> {
    /// Begins a transaction with limits of its own, except where the user has set others.
    pub(super) async fn begin(&self, purpose: Purpose) -> Result<(), PgError> {
        let mode = match purpose {
            Purpose::Read => "isolation level repeatable read, read only",
            // Behind a lock, what others have done in the meantime must be seen.
            Purpose::Write => "isolation level read committed",
        };
        self.run("begin", Limit::Short, &format!("begin {mode}"))
            .await?;
        self.is_open.set(true);
        let limit = self.way.limit(Limit::Long).saturating_add(BACKSTOP);
        // Rows are read at the pace of whoever takes them.
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
            // A server that has this (from 14) ends work whose client has gone.
            ("client_connection_check_interval", "10s".to_owned()),
        ] {
            let wanted = self.way.option(name).unwrap_or(ours);
            values.push(format!("('{name}', '{}')", wanted.replace('\'', "''")));
        }
        let statement = format!(
            "select set_config(name, wanted, true) from pg_catalog.pg_settings \
             join (values {}) as limits (limit_name, wanted) on name = limit_name where source <> 'client' \
             and (name <> 'client_connection_check_interval' or version() like '%linux%')",
            values.join(", ")
        );
        self.rows("begin", Limit::Short, &statement, &[]).await?;
        Ok(())
    }

    pub(super) async fn commit(&self) -> Result<(), PgError> {
        self.is_open.set(false);
        self.run("commit", Limit::Short, "commit").await
    }

    /// Sets something until the transaction ends, or goes back to before.
    pub(super) async fn set(&self, name: &str, value: &str) -> Result<(), PgError> {
        let statement = "select set_config($1, $2, true)";
        let parameters: [Parameter<'_>; 2] = [(&name, Type::TEXT), (&value, Type::TEXT)];
        self.rows("begin", Limit::Short, statement, &parameters)
            .await?;
        Ok(())
    }

    /// Does a statement that answers nothing.
    pub(super) async fn run(
        &self,
        doing: &'static str,
        limit: Limit,
        statement: &str,
    ) -> Result<(), PgError> {
        self.within(doing, limit, self.client.batch_execute(statement))
            .await
    }

    /// Asks for rows.
    pub(super) async fn rows(
        &self,
        doing: &'static str,
        limit: Limit,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<Vec<Row>, PgError> {
        let asked = self.client.query_typed(statement, parameters);
        self.within(doing, limit, asked).await
    }

    /// Asks for rows that come one by one.
    pub(super) async fn stream(
        &self,
        doing: &'static str,
        statement: &str,
    ) -> Result<RowStream, PgError> {
        let none: [(&(dyn ToSql + Sync), Type); 0] = [];
        let asked = self.client.query_typed_raw(statement, none);
        self.within(doing, Limit::Long, asked).await
    }

    /// Does a statement that changes rows, and returns how many.
    pub(super) async fn write(
        &self,
        doing: &'static str,
        statement: &str,
        parameters: &[Parameter<'_>],
    ) -> Result<u64, PgError> {
        let asked = self.client.execute_typed(statement, parameters);
        self.within(doing, Limit::Long, asked).await
    }

    /// Waits for an answer as long as it may take.
    pub(super) async fn within<T>(
        &self,
        doing: &'static str,
        limit: Limit,
        work: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, PgError> {
        let address = &self.way.address;
        let wait = self.way.limit(limit);
        let error = match timeout(wait, work).await {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => error,
            Err(_) => {
                self.is_open.set(false);
                let failure = failure::late(address, doing, wait);
                return Err(match limit {
                    Limit::Short => PgError::passing(failure),
                    // It would take as long again.
                    Limit::Long => failure.into(),
                });
            }
        };
        // Why the connection was closed, only the connection knows.
        let driver = error.is_closed().then(|| self.driver.take()).flatten();
        if let Some(mut driver) = driver
            && let Ok(Ok(Some(cause))) = timeout(FAREWELL, &mut driver.0).await
        {
            return Err(failure::of(address, doing, &cause));
        }
        Err(failure::of(address, doing, &error))
    }

    /// Reads one value of the first row.
    pub(super) fn value<'r, T>(
        &self,
        doing: &'static str,
        rows: &'r [Row],
        column: usize,
    ) -> Result<T, PgError>
    where
        T: tokio_postgres::types::FromSql<'r>,
    {
        let address = &self.way.address;
        let row = rows.first().ok_or_else(|| {
            Failure::new(
                Kind::Internal,
                format!("cannot {doing}: PostgreSQL answered no row"),
            )
        })?;
        row.try_get(column)
            .map_err(|error| failure::of(address, doing, &error))
    }

    /// Ends the session. An open transaction is rolled back: a pooler would have to give up a session of the server
    /// that somebody has left in the middle of one.
    pub(super) async fn close(self) {
        let Self {
            client,
            driver,
            is_open,
            ..
        } = self;
        if is_open.get() {
            let _ = timeout(FAREWELL, client.batch_execute("rollback")).await;
        }
        drop(client);
        if let Some(mut driver) = driver.take() {
            let _ = timeout(FAREWELL, &mut driver.0).await;
        }
    }
}

/// Writes a duration as the server's settings have it.
pub(super) fn milliseconds(duration: Duration) -> String {
    format!("{}ms", duration.min(LONGEST).as_millis())
}

/// Does `work` on a thread with a runtime of its own: whoever calls may be on a runtime, which must not wait.
pub(super) fn on_thread<T, W>(work: W) -> Result<thread::JoinHandle<Result<T, Failure>>, Failure>
where
    T: Send + 'static,
    W: AsyncFnOnce() -> Result<T, Failure> + Send + 'static,
{
    let failed = |error: std::io::Error| {
        Failure::new(Kind::Internal, "cannot start a thread").caused_by(error)
    };
    let run = move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.map_err(failed)?.block_on(work())
    };
    thread::Builder::new()
        .name("postgres".to_owned())
        .spawn(run)
        .map_err(failed)
}

/// Waits for what was begun on a thread.
pub(super) fn joined<T>(thread: thread::JoinHandle<Result<T, Failure>>) -> Result<T, Failure> {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// Finds the value that `options` gives to a setting; the last one counts.
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

/// Splits at blanks; a backslash keeps the character behind it as it is.
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
    fn a_setting_is_found_however_it_is_written() {
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
