//! Errors of the server and of the connection as messages and exit codes.

use std::error::Error;
use std::io;
use std::time::Duration;

use rustls::pki_types::InvalidDnsNameError;
use tokio_postgres::error::{DbError, Severity, SqlState};

use super::address::{Host, TableAddress, quoted};
use crate::client::causes::{TlsProblem, root};
use crate::error::{Failure, Kind};
use crate::text;

/// An error, and whether a retry may help.
#[derive(Debug)]
pub(super) struct PgError {
    pub(super) failure: Failure,
    pub(super) is_transient: bool,
    /// The SQLSTATE, if the session continues: the server rejected a statement, so that it had no effect.
    pub(super) code: Option<SqlState>,
}

impl PgError {
    /// An error that a retry may resolve.
    pub(super) fn transient(failure: Failure) -> Self {
        Self {
            is_transient: true,
            ..failure.into()
        }
    }

    /// Returns whether the server rejected a statement with this code.
    pub(super) fn is(&self, code: &SqlState) -> bool {
        self.code.as_ref() == Some(code)
    }
}

impl From<Failure> for PgError {
    fn from(failure: Failure) -> Self {
        Self {
            failure,
            is_transient: false,
            code: None,
        }
    }
}

/// Converts an error of connecting.
pub(super) fn connecting(address: &TableAddress, error: &tokio_postgres::Error) -> PgError {
    let server = address.server();
    if let Some(db_error) = error.as_db_error() {
        let cause = anyhow::anyhow!(server_message(db_error));
        if is_transient(db_error) {
            let message = format!("PostgreSQL at {server} does not accept connections now");
            let failure = Failure::new(Kind::Unavailable, message).hint(TRY_LATER);
            return PgError::transient(failure.caused_by(cause));
        }
        let message = format!("PostgreSQL at {server} refused the login");
        let failure = Failure::new(Kind::Output, message).hint(access_hint(address, db_error));
        return failure.caused_by(cause).into();
    }
    let cause = root(error);
    let tls_problem = TlsProblem::of(error);
    if let Some(TlsProblem::Untrusted(_)) = tls_problem {
        let message = format!("the certificate of PostgreSQL at {server} is not trusted");
        return Failure::new(Kind::Unsafe, message)
            .caused_by(anyhow::anyhow!(cause))
            .hint("for a certificate authority of your own, name its certificate with `--ca-cert` or `sslrootcert=`; the certificate must be for the host name")
            .into();
    }
    // The client has no types for these; the tests pin the texts.
    let refusal = match cause.as_str() {
        "server does not support TLS" => Some((
            Kind::Unsafe,
            "does not support TLS, and the connection would not be encrypted",
            "enable `ssl` on the server; on a network that you trust, add `sslmode=disable` to the address",
        )),
        "server did not use channel binding" => Some((
            Kind::Unsafe,
            "did not use channel binding, which `channel_binding=require` demands",
            "the server must ask for a scram-sha-256 password over TLS, and its certificate must not be signed with Ed25519; otherwise remove `channel_binding`",
        )),
        "password missing" => Some((
            Kind::Output,
            "requires a password, and none is set",
            "add it to ~/.pgpass (or the file that PGPASSFILE names), or set PGPASSWORD",
        )),
        _ => None,
    };
    if let Some((kind, why, hint)) = refusal {
        let message = format!("PostgreSQL at {server} {why}");
        return Failure::new(kind, message).hint(hint).into();
    }
    let failure = unreachable(address, &cause);
    if is_cut(error) && tls_problem.is_none() {
        PgError::transient(failure)
    } else {
        failure.into()
    }
}

/// The error for a failed connection.
pub(super) fn unreachable(address: &TableAddress, cause: &str) -> Failure {
    let hint = match &address.host {
        Host::Name(_) => "check host and port: is the server running, and does it listen there?",
        Host::Socket(_) => "check the folder of the socket: is the server running on this machine?",
    };
    let message = format!("cannot reach PostgreSQL at {}", address.server());
    Failure::new(Kind::Unavailable, message)
        .caused_by(anyhow::anyhow!(cause.to_owned()))
        .hint(hint)
}

/// The error for a timeout.
pub(super) fn timed_out(address: &TableAddress, doing: &str, limit: Duration) -> Failure {
    let message = format!("cannot {doing} in PostgreSQL at {}", address.server());
    let seconds = limit.as_secs_f64();
    Failure::new(Kind::Unavailable, message)
        .caused_by(anyhow::anyhow!("no answer within {seconds:.1} s"))
        .hint("check in pg_stat_activity what the server is doing, or raise `--timeout`")
}

/// Converts an error of a statement. `doing` describes it in the message.
pub(super) fn of(address: &TableAddress, doing: &str, error: &tokio_postgres::Error) -> PgError {
    let message = format!("cannot {doing} in PostgreSQL at {}", address.server());
    let Some(db_error) = error.as_db_error() else {
        return connection_lost(message, error);
    };
    let transient = is_transient(db_error);
    let kind = match db_error.code() {
        _ if transient => Kind::Unavailable,
        // Class 22, data exceptions: the service sent an invalid value.
        code if code.code().starts_with("22") => Kind::Protocol,
        _ => Kind::Output,
    };
    let mut failure =
        Failure::new(kind, message).caused_by(anyhow::anyhow!(server_message(db_error)));
    if let Some(hint) = hint(address, db_error) {
        failure = failure.hint(hint);
    }
    let goes_on = db_error.parsed_severity() == Some(Severity::Error);
    PgError {
        failure,
        is_transient: transient,
        code: goes_on.then(|| db_error.code().clone()),
    }
}

/// The error for a lost connection, or another client error.
fn connection_lost(message: String, error: &tokio_postgres::Error) -> PgError {
    let cause = root(error);
    if !is_cut(error) {
        return Failure::new(Kind::Output, message)
            .caused_by(anyhow::anyhow!(cause))
            .into();
    }
    let failure = Failure::new(Kind::Unavailable, message)
        .caused_by(anyhow::anyhow!("the connection was lost: {cause}"))
        .hint("check the log of the server, then run the same command again");
    PgError::transient(failure)
}

/// Returns whether the connection was lost.
fn is_cut(error: &tokio_postgres::Error) -> bool {
    // A host name that TLS cannot check is an I/O error too.
    let is_name = |inner: &(dyn Error + Send + Sync + 'static)| inner.is::<InvalidDnsNameError>();
    let is_io = |cause: &(dyn Error + 'static)| {
        let io = cause.downcast_ref::<io::Error>();
        io.is_some_and(|io| !io.get_ref().is_some_and(is_name))
    };
    error.is_closed() || anyhow::Chain::new(error).any(is_io)
}

/// Returns whether a retry may succeed.
fn is_transient(db_error: &DbError) -> bool {
    let transient = [
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::TOO_MANY_CONNECTIONS,
        SqlState::ADMIN_SHUTDOWN,
        SqlState::CRASH_SHUTDOWN,
        SqlState::CANNOT_CONNECT_NOW,
        SqlState::CONNECTION_EXCEPTION,
        SqlState::CONNECTION_DOES_NOT_EXIST,
        SqlState::CONNECTION_FAILURE,
    ];
    // PgBouncer has a single code for its own errors.
    let pooler = [
        "query_wait_timeout",
        "no more connections allowed",
        "cannot connect to server",
        "server login has been failing",
        "server conn crashed",
        "server closed",
        "shutting down",
    ];
    transient.contains(db_error.code())
        || *db_error.code() == SqlState::PROTOCOL_VIOLATION
            && pooler
                .iter()
                .any(|message| db_error.message().contains(message))
}

/// Formats the server's message with its code.
fn server_message(db_error: &DbError) -> String {
    let message = format!(
        "{} (SQLSTATE {})",
        db_error.message(),
        db_error.code().code()
    );
    let more = [db_error.detail(), db_error.hint(), db_error.where_()].into_iter();
    let more = more
        .flatten()
        .map(|text| text.lines().next().unwrap_or_default());
    text::join([&*message].into_iter().chain(more), "; ")
}

const TRY_LATER: &str = "run the same command again later, or ask the administrator of the server";

fn access_hint(address: &TableAddress, db_error: &DbError) -> String {
    let TableAddress { database, user, .. } = address;
    let code = db_error.code();
    if *code == SqlState::INVALID_PASSWORD {
        "check the user, and the password in ~/.pgpass, PGPASSFILE or PGPASSWORD".to_owned()
    } else if *code == SqlState::INVALID_CATALOG_NAME {
        format!("create it with `createdb {database}`, or name another in the address")
    } else if *code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION {
        "check the user, and pg_hba.conf on the server".to_owned()
    } else if db_error.message().contains("unsupported startup parameter")
        && address.options.is_some()
    {
        let user = quoted(user);
        format!(
            "a connection pooler does not accept `options` (from the address or PGOPTIONS); remove them and set them for the user instead: alter role {user} set …; or connect to the server directly"
        )
    } else {
        TRY_LATER.to_owned()
    }
}

fn hint(address: &TableAddress, db_error: &DbError) -> Option<String> {
    let code = db_error.code();
    let table = address.table.quoted();
    Some(if *code == SqlState::INSUFFICIENT_PRIVILEGE {
        let schema = address.table.schema.as_deref().unwrap_or("public");
        format!(
            "`{0}` needs permission to create temporary tables in the database; if {table} is new: grant create on schema {1} to \"{0}\"; if it exists: grant select, insert, update on {table} to \"{0}\"",
            address.user,
            quoted(schema)
        )
    } else if *code == SqlState::READ_ONLY_SQL_TRANSACTION {
        "this server is read-only: name the primary server".to_owned()
    } else if *code == SqlState::INVALID_SCHEMA_NAME {
        match &address.table.schema {
            Some(schema) => format!("create it with: create schema {}", quoted(schema)),
            None => "name a schema: `table=schema.name`".to_owned(),
        }
    } else if *code == SqlState::DISK_FULL {
        "free some space on the server".to_owned()
    } else if *code == SqlState::QUERY_CANCELED {
        "if your own `statement_timeout` stopped it (PGOPTIONS, or `options=` in the address), raise it there".to_owned()
    } else if code.code().starts_with("57P") {
        "the server was shut down: run the same command again when it is back".to_owned()
    } else {
        return None;
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::block_on;
    use crate::postgres::tls;
    use std::io::{Read as _, Write as _};
    use std::net::{Ipv4Addr, TcpListener};
    use tokio_postgres::config::{ChannelBinding, Config, SslMode};

    /// Connects to a server that answers the first message like this.
    fn refused(answer: &[u8], mode: SslMode, host: &str) -> PgError {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let reply = answer.to_vec();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            let _ = stream.read(&mut [0; 512]);
            let _ = stream.write_all(&reply);
        });
        let address = TableAddress::parse("postgres://me@localhost/db").expect("an address");
        let mut config = Config::new();
        config
            .user("me")
            .host(host)
            .hostaddr(Ipv4Addr::LOCALHOST.into())
            .port(port);
        config
            .ssl_mode(mode)
            .channel_binding(ChannelBinding::Require);
        if answer[answer.len() - 1] != 0 {
            config.channel_binding(ChannelBinding::Prefer);
        }
        let tls = tls::connector(&address, None).expect("TLS");
        let connected = block_on(config.connect(tls));
        server.join().expect("the server ends");
        connecting(&address, &connected.err().expect("refused"))
    }

    // Fails if the client words these errors in another way.
    #[test]
    fn refusals_are_recognized() {
        for (answer, mode, kind, why) in [
            (
                &b"N"[..],
                SslMode::Require,
                Kind::Unsafe,
                "does not support TLS",
            ),
            (
                b"R\0\0\0\x08\0\0\0\0",
                SslMode::Disable,
                Kind::Unsafe,
                "channel binding",
            ),
            (
                b"R\0\0\0\x08\0\0\0\x03",
                SslMode::Disable,
                Kind::Output,
                "requires a password",
            ),
        ] {
            let error = refused(answer, mode, "localhost");
            let said = error.failure.to_string();
            assert!(said.contains(why), "{said}");
            assert_eq!(
                (error.failure.kind, error.is_transient),
                (kind, false),
                "{said}"
            );
        }
    }

    // A pooler has one code for its own errors, so only their texts tell which may pass.
    #[test]
    fn errors_of_the_server_are_retried_by_their_codes() {
        for (code, text, is_transient, hint) in [
            (
                "57P03",
                "the database system is starting up",
                true,
                "again later",
            ),
            ("53300", "too many clients already", true, "again later"),
            (
                "08P01",
                "no more connections allowed (max_client_conn)",
                true,
                "again later",
            ),
            (
                "08P01",
                "server login has been failing, cached error",
                true,
                "again later",
            ),
            (
                "08P01",
                "invalid frontend message type",
                false,
                "again later",
            ),
            (
                "28P01",
                "password authentication failed",
                false,
                "check the user, and the password",
            ),
            ("28000", "no pg_hba.conf entry", false, "pg_hba.conf"),
            ("3D000", "database does not exist", false, "createdb db"),
        ] {
            let fields = format!("SFATAL\0VFATAL\0C{code}\0M{text}\0\0");
            let length = u32::try_from(fields.len() + 4).expect("a short message");
            let mut answer = b"E".to_vec();
            answer.extend(length.to_be_bytes());
            answer.extend(fields.as_bytes());
            let error = refused(&answer, SslMode::Disable, "localhost");
            let kind = if is_transient {
                Kind::Unavailable
            } else {
                Kind::Output
            };
            assert_eq!(error.failure.kind, kind, "{code} {text}");
            assert_eq!(error.is_transient, is_transient, "{code} {text}");
            let error = anyhow::Error::new(error.failure);
            let given = crate::error::hint_of(&error).unwrap_or_default();
            assert!(given.contains(hint), "{code} {text}: {given}");
            let said = format!("{error:#}");
            assert!(said.contains(text) && said.contains(code), "{said}");
        }
    }

    #[test]
    fn only_a_lost_connection_is_retried() {
        assert!(refused(b"S", SslMode::Require, "localhost").is_transient);
        assert!(!refused(b"S", SslMode::Require, "no name").is_transient);
    }
}
