//! What a server says, or the way to it, in words and as an exit code.

use std::error::Error;
use std::io;

use postgres::error::{DbError, SqlState};

use super::address::Address;
use super::host::Host;
use crate::error::{Failure, Kind};
use crate::service::causes::{is_untrusted, root};

/// Says why there is no session.
pub(super) fn connecting(address: &Address, error: &postgres::Error) -> Failure {
    let server = address.server();
    if let Some(said) = error.as_db_error() {
        let failure = Failure::new(
            Kind::Output,
            format!("PostgreSQL at {server} does not let us in"),
        );
        return failure
            .caused_by(anyhow::anyhow!(words(said)))
            .hint(access_hint(address, said));
    }
    let cause = root(error);
    if is_untrusted(error) {
        return Failure::new(
            Kind::Unsafe,
            format!("the certificate of PostgreSQL at {server} is not trusted"),
        )
        .caused_by(anyhow::anyhow!(cause))
        .hint("where it is your own authority's, name its certificate with `--ca-cert` or `sslrootcert=`; it must be for the name of the host");
    }
    if cause == "server does not support TLS" {
        return Failure::new(
            Kind::Unsafe,
            format!("PostgreSQL at {server} has no TLS, and this would go over the network in clear"),
        )
        .hint("turn on `ssl` on the server; on a network that you trust, add `sslmode=disable` to the address");
    }
    let missing = "password missing";
    if cause == missing {
        return Failure::new(
            Kind::Output,
            format!("PostgreSQL at {server} asks for a password, and there is none"),
        )
        .hint("put it into ~/.pgpass (or the file that PGPASSFILE names), or set PGPASSWORD");
    }
    let hint = match &address.host {
        Host::Name(_) => "look at host and port; is the server running, and does it listen there?",
        Host::Socket(_) => {
            "look at the folder of the socket; is the server running on this machine?"
        }
    };
    Failure::new(Kind::Output, format!("cannot reach PostgreSQL at {server}"))
        .caused_by(anyhow::anyhow!(cause))
        .hint(hint)
}

/// Says what went wrong when `doing` something in a session.
pub(super) fn of(address: &Address, doing: &str, error: &postgres::Error) -> Failure {
    let server = address.server();
    let message = format!("cannot {doing} in PostgreSQL at {server}");
    let Some(said) = error.as_db_error() else {
        return Failure::new(Kind::Output, message)
            .caused_by(anyhow::anyhow!(lost(error)))
            .hint("look at the log of the server; then run the same command again");
    };
    // What a value is, is for the service to answer for (class 22: data exceptions).
    let kind = if said.code().code().starts_with("22") {
        Kind::Protocol
    } else {
        Kind::Output
    };
    let failure = Failure::new(kind, message).caused_by(anyhow::anyhow!(words(said)));
    match hint(address, said) {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// Says that the connection is gone, or what else went wrong on this side of it.
fn lost(error: &postgres::Error) -> String {
    let cause = root(error);
    let is_io = |cause: &(dyn Error + 'static)| cause.is::<io::Error>();
    if error.is_closed() || anyhow::Chain::new(error).any(is_io) {
        format!("the connection was lost: {cause}")
    } else {
        cause
    }
}

/// Repeats what the server said, with its code.
fn words(said: &DbError) -> String {
    let mut words = format!("{} (SQLSTATE {})", said.message(), said.code().code());
    for more in [said.detail(), said.hint(), said.where_()]
        .into_iter()
        .flatten()
    {
        words.push_str("; ");
        words.push_str(more.lines().next().unwrap_or_default());
    }
    words
}

fn access_hint(address: &Address, said: &DbError) -> String {
    let code = said.code();
    if *code == SqlState::INVALID_PASSWORD {
        return "look at the user, and at the password in ~/.pgpass, PGPASSFILE or PGPASSWORD"
            .to_owned();
    }
    if *code == SqlState::INVALID_CATALOG_NAME {
        return format!(
            "create it with `createdb {}`, or name another in the address",
            address.database
        );
    }
    if *code == SqlState::INVALID_AUTHORIZATION_SPECIFICATION {
        return "look at the user, and at pg_hba.conf on the server".to_owned();
    }
    "run the same command again later, or ask whoever runs the server".to_owned()
}

fn hint(address: &Address, said: &DbError) -> Option<String> {
    let code = said.code();
    let table = address.table.quoted();
    Some(if *code == SqlState::INSUFFICIENT_PRIVILEGE {
        format!(
            "`{0}` needs the right to make temporary tables in the database, and select, insert and update on {table}: grant select, insert, update on {table} to \"{0}\"",
            address.user
        )
    } else if *code == SqlState::LOCK_NOT_AVAILABLE {
        "another session holds the table: find it in pg_locks, or wait longer with `options=-c lock_timeout=1h`".to_owned()
    } else if *code == SqlState::READ_ONLY_SQL_TRANSACTION {
        "this server only reads: name the one that is written to".to_owned()
    } else if *code == SqlState::INVALID_SCHEMA_NAME {
        match &address.table.schema {
            Some(schema) => format!("create it with: create schema {}", super::quoted(schema)),
            None => "name a schema: `table=schema.name`".to_owned(),
        }
    } else if *code == SqlState::DISK_FULL {
        "free some space on the server".to_owned()
    } else if code.code().starts_with("57P") {
        "the server was stopped: run the same command again when it is back".to_owned()
    } else {
        return None;
    })
}
