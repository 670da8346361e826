//! PgBouncer in transaction mode: each transaction may run in a different server session.

use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use tempfile::TempDir;

use super::holder::Holder;
use super::proxy::{COMMIT, COPY, Fault, Proxy};
use super::{Files, Service, serving, spawn_export, wait_for, wait_for_exit};
use crate::database::{Database, shared, unprivileged};
use crate::harness::{Run, Running, Server};

/// A pooler with one server session per database.
struct Pooler {
    pgbouncer: Running,
    port: u16,
    _folder: TempDir,
}

impl Pooler {
    /// Returns `None`, with a message, if PgBouncer is not installed.
    fn start(database: &Database, more: &str) -> Option<Self> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut folders: Vec<_> = std::env::split_paths(&path).collect();
        folders.push("/usr/sbin".into());
        let mut programs = folders.iter().map(|folder| folder.join("pgbouncer"));
        let Some(program) = programs.find(|program| program.is_file()) else {
            eprintln!("skipped: PgBouncer is not installed");
            return None;
        };
        let folder = TempDir::with_prefix("pgbouncer").unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        // Released at once, so that the pooler can use it.
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let settings = folder.path().join("pgbouncer.ini");
        let mut file = fs::File::create(&settings).unwrap();
        write!(
            file,
            "[databases]\n* = host=127.0.0.1 port={} user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nunix_socket_dir =\nauth_type = any\npool_mode = transaction\n\
             default_pool_size = 1\nserver_tls_sslmode = disable\n{more}\n",
            database.port
        )
        .unwrap();
        let pgbouncer = unprivileged(&program)
            .arg("-q")
            .arg(&settings)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .start();
        let pooler = Self {
            pgbouncer,
            port,
            _folder: folder,
        };
        wait_for("the pooler listens", || {
            std::net::TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        Some(pooler)
    }

    fn address(&self, name: &str) -> String {
        let port = self.port;
        format!("postgres://postgres@127.0.0.1:{port}/{name}?table=batches")
    }

    /// Runs `sql` through the pooler.
    fn sql(&self, name: &str, sql: &str) -> String {
        let output = Run::new("psql")
            .args(["-X", "-A", "-t", "-q", "-h", "127.0.0.1", "-U", "postgres"])
            .args(["-p", &self.port.to_string(), "-d", name, "-c", sql])
            .raw();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{sql}: {said}");
        String::from_utf8(output.stdout)
            .unwrap()
            .trim_end()
            .to_owned()
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        self.pgbouncer.kill();
        self.pgbouncer.wait();
    }
}

/// State that a session could leave to the next: settings, tables, statements and locks.
const SESSION_STATE: &str = "select (select string_agg(setting, ',' order by name) from pg_settings where name in \
    ('statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout', \
    'client_connection_check_interval', 'default_transaction_isolation', 'search_path')), \
    (select count(*) from pg_class where relpersistence = 't'), \
    (select count(*) from pg_prepared_statements), \
    (select count(*) from pg_locks join pg_database on pg_database.oid = database \
    where locktype = 'advisory' and datname = current_database()), current_setting('transaction_isolation')";

#[test]
fn exports_work_through_a_pooler_and_leave_no_session_state() {
    let Some(database) = shared() else { return };
    let Some(pooler) = Pooler::start(database, "") else {
        return;
    };
    let server = Server::start(&["--batches", "3000", "--seed", "5"]);
    let service = Service::of(&server);
    let (name, files) = (database.fresh(), Files::new());
    let address = pooler.address(&name);
    let pid = "select pg_backend_pid()";
    let (before, session) = (pooler.sql(&name, SESSION_STATE), pooler.sql(&name, pid));
    let limit = ["--timeout", "20s", "--retries", "0"];
    let last = service.load(
        &address,
        &[&limit[..], &["--manifest", &files.at("m")]].concat(),
    );
    assert!(
        last.contains("(3,000 new, 0 changed, 0 unchanged)"),
        "{last}"
    );
    database.sql(
        &name,
        "update batches set comment = 'mine' where batch_id = (select min(batch_id) from batches)",
    );
    let last = service.load(&address, &limit);
    assert!(
        last.contains("(0 new, 1 changed, 2,999 unchanged)"),
        "{last}"
    );
    assert_eq!(pooler.sql(&name, SESSION_STATE), before);
    assert_eq!(pooler.sql(&name, pid), session, "still the same session");

    let manifest = ["verify", &address, "--manifest", &files.at("m")];
    let ended = service.run(&[&manifest[..], &limit].concat());
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(pooler.sql(&name, SESSION_STATE), before);
    assert_eq!(pooler.sql(&name, pid), session, "still the same session");

    // Several concurrent exports share the one session.
    let children: Vec<Running> = (0..3).map(|_| spawn_export(&service, &address)).collect();
    for child in children {
        let ended = wait_for_exit(child);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        assert!(ended.stderr.contains("3,000 unchanged)"), "{ended:?}");
    }
    assert_eq!(pooler.sql(&name, SESSION_STATE), before);
}

#[test]
fn statements_that_other_programs_left_in_a_session_do_not_matter() {
    let Some(database) = shared() else { return };
    let Some(pooler) = Pooler::start(database, "") else {
        return;
    };
    let name = database.fresh();
    let left = "prepare s0 as select 1; prepare s1 as select 1; prepare s2 as select 1";
    pooler.sql(&name, left);
    let scripted = serving(&[&[], &[]]);
    let last = Service::scripted(&scripted).load(&pooler.address(&name), &["--retries", "0"]);
    assert!(last.contains("(2 new, 0 changed, 0 unchanged)"), "{last}");
    let names = "select string_agg(name, ' ' order by name) from pg_prepared_statements";
    assert_eq!(pooler.sql(&name, names), "s0 s1 s2");
}

#[test]
fn a_killed_run_leaves_no_session_state_in_a_pooler() {
    let Some(database) = shared() else { return };
    let Some(pooler) = Pooler::start(database, "") else {
        return;
    };
    let name = database.fresh();
    let address = pooler.address(&name);
    let first = serving(&[&[]]);
    Service::scripted(&first).load(&address, &[]);
    let before = pooler.sql(&name, SESSION_STATE);
    let holder = Holder::start(database, &name, "update batches set comment = comment");
    let more = serving(&[&[("comment", "\"new\"")]]);
    let mut child = spawn_export(&Service::scripted(&more), &address);
    let waiting = format!(
        "select count(*) from pg_stat_activity where datname = '{name}' and wait_event_type = 'Lock'"
    );
    wait_for("the export waits in its transaction", || {
        database.sql("postgres", &waiting) == "1"
    });
    child.kill();
    child.wait();
    holder.release();
    assert_eq!(pooler.sql(&name, SESSION_STATE), before);
    let found = "select count(*), count(*) filter (where comment = 'new') from batches";
    assert_eq!(database.sql(&name, found), "1|0");
    let last = Service::scripted(&more).load(&address, &[]);
    assert!(last.contains("(0 new, 1 changed, 0 unchanged)"), "{last}");
}

#[test]
fn a_pooler_that_rejects_options_is_reported() {
    let Some(database) = shared() else { return };
    let Some(pooler) = Pooler::start(database, "") else {
        return;
    };
    let name = database.fresh();
    let scripted = serving(&[&[]]);
    // PgBouncer does not support this parameter.
    let address = format!("{}&options=-c%20geqo%3Doff", pooler.address(&name));
    let ended = Service::scripted(&scripted).export(&address, &[]);
    assert_eq!(ended.code, Some(8), "{ended:?}");
    for words in ["unsupported startup parameter", "pooler", "PGOPTIONS"] {
        assert!(ended.stderr.contains(words), "{words} {ended:?}");
    }
    assert_eq!(scripted.requests().len(), 0);
}

#[test]
fn user_timeouts_apply_behind_a_pooler_that_drops_them() {
    let Some(database) = shared() else { return };
    let drop = "ignore_startup_parameters = options";
    let Some(pooler) = Pooler::start(database, drop) else {
        return;
    };
    let name = database.fresh();
    let address = pooler.address(&name);
    let first = serving(&[&[]]);
    Service::scripted(&first).load(&address, &[]);
    database.sql(
        &name,
        "create function nap() returns trigger language plpgsql as $$ begin perform pg_sleep(30); return new; end $$; \
         create trigger nap before update on batches for each row execute function nap()",
    );
    let more = serving(&[&[("comment", "\"new\"")]]);
    let address = format!("{address}&options=-c%20statement_timeout%3D300ms");
    let ended = Service::scripted(&more).export(&address, &[]);
    assert_eq!(ended.code, Some(8), "{ended:?}");
    assert!(ended.stderr.contains("57014"), "{ended:?}");
    let limit = pooler.sql(&name, "show statement_timeout");
    assert_eq!(limit, "0", "only for that transaction");
}

#[test]
fn a_lost_commit_response_is_resolved_through_a_pooler() {
    let Some(database) = shared() else { return };
    let Some(pooler) = Pooler::start(database, "") else {
        return;
    };
    for fault in [
        Fault::CutAfter(COMMIT),
        Fault::CutBefore(COMMIT),
        Fault::CutAfter(COPY),
    ] {
        let name = database.fresh();
        // The first connection is the rehearsal.
        let proxy = Proxy::start(pooler.port, move |number| match number {
            2 => fault,
            _ => Fault::None,
        });
        let address = pooler
            .address(&name)
            .replace(&pooler.port.to_string(), &proxy.port.to_string());
        let scripted = serving(&[&[], &[]]);
        let address = format!("{address}&sslmode=disable");
        let last = Service::scripted(&scripted).load(&address, &[]);
        assert!(last.contains("(2 new, 0 changed, 0 unchanged)"), "{last}");
        assert_eq!(database.sql(&name, "select count(*) from batches"), "2");
        assert!(proxy.connections() > 2);
    }
}
