//! Another session that keeps its locks.

use std::io::Write as _;
use std::process::Stdio;

use super::wait_for;
use crate::database::Database;
use crate::harness::{Run, Running};

/// psql with an open transaction, which ends on drop.
pub(super) struct Holder {
    psql: Running,
    /// The server process of the session.
    pub(super) pid: String,
}

impl Holder {
    /// Runs `statements` in a transaction and leaves it open.
    pub(super) fn start(database: &Database, name: &str, statements: &str) -> Self {
        let mut psql = Run::new("psql")
            .args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-U", "postgres", "-h"])
            .arg(database.socket_folder())
            .args(["-p", &database.port.to_string(), "-d", name])
            .env("PGAPPNAME", "somebody-else")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::inherit())
            .start();
        let input = psql.stdin.as_mut().unwrap();
        writeln!(input, "begin; {statements}; select 'held';").unwrap();
        let held = format!(
            "select pid from pg_stat_activity where datname = '{name}' \
             and application_name = 'somebody-else' and state = 'idle in transaction' and query like '%held%'"
        );
        let mut pid = String::new();
        wait_for("the lock is held", || {
            pid = database.sql("postgres", &held);
            !pid.is_empty()
        });
        Self { psql, pid }
    }

    /// Ends the transaction.
    pub(super) fn release(mut self) {
        let input = self.psql.stdin.as_mut().unwrap();
        writeln!(input, "commit;").unwrap();
        drop(self.psql.stdin.take());
        self.psql.wait();
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.psql.kill();
        self.psql.wait();
    }
}
