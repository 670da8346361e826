//! A real PostgreSQL server for tests: one for the whole run, always removed with it.

use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::harness::{LIMIT, Run, Running};

/// The password of `guarded`, the only user who needs one.
pub(crate) const PASSWORD: &str = "germinate-quietly";

/// A shell script that stops the server and removes its files when its input is closed, so that even a
/// killed test leaves nothing behind.
const KEEPER: &str = r#"
"$@" >"$LOG" 2>&1 &
server=$!
cat >/dev/null
kill -INT $server 2>/dev/null
wait $server
rm -rf "$FOLDER"
"#;

pub(crate) struct Database {
    /// Stops the server when its input is closed; nothing is ever written to it.
    keeper: Running,
    folder: PathBuf,
    pub(crate) port: u16,
    /// The certificate of the server.
    pub(crate) certificate: PathBuf,
    count: AtomicUsize,
}

/// Returns the server of this run; `None`, with a message, if PostgreSQL is not installed.
pub(crate) fn shared() -> Option<&'static Database> {
    static SHARED: OnceLock<Option<Database>> = OnceLock::new();
    SHARED.get_or_init(Database::start).as_ref()
}

impl Database {
    pub(crate) fn start() -> Option<Self> {
        let Some(bin) = programs() else {
            eprintln!("skipped: PostgreSQL (initdb, postgres, psql) is not installed");
            return None;
        };
        // Removed by the keeper.
        let folder = TempDir::with_prefix("pg").unwrap().keep();
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).unwrap();
        let certified = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let (certificate, key) = (folder.join("server.crt"), folder.join("server.key"));
        fs::write(&certificate, certified.cert.pem()).unwrap();
        fs::write(&key, certified.signing_key.serialize_pem()).unwrap();
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
        let data = folder.join("data");
        if is_root() {
            let mut chown = Run::new("chown");
            succeed(chown.args(["-R", "postgres"]).arg(&folder));
        }
        let mut initdb = unprivileged(&bin.join("initdb"));
        initdb.args(["-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync"]);
        succeed(initdb.arg("--locale=C.UTF-8").arg("-D").arg(&data));
        let rules =
            "local all all trust\nhost all guarded all scram-sha-256\nhost all all all trust\n";
        fs::write(data.join("pg_hba.conf"), rules).unwrap();
        // Released at once, so that the server can use it.
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let mut server = unprivileged(&bin.join("postgres"));
        server.arg("-D").arg(&data);
        let sockets = format!("unix_socket_directories={}", folder.display());
        let certificate_file = format!("ssl_cert_file={}", certificate.display());
        let key_file = format!("ssl_key_file={}", key.display());
        for setting in [
            format!("port={port}"),
            sockets,
            certificate_file,
            key_file,
            "listen_addresses=127.0.0.1".to_owned(),
            "ssl=on".to_owned(),
            "fsync=off".to_owned(),
            "max_connections=60".to_owned(),
        ] {
            server.args(["-c", &setting]);
        }
        let keeper = server
            .under(&["sh", "-c", KEEPER, "sh"])
            .env("LOG", folder.join("log"))
            .env("FOLDER", &folder)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .start();
        let database = Self {
            keeper,
            folder,
            port,
            certificate,
            count: AtomicUsize::new(0),
        };
        let deadline = Instant::now() + LIMIT;
        while !database.try_sql("postgres", "select 1").status.success() {
            let log = fs::read_to_string(database.folder.join("log")).unwrap_or_default();
            let is_hopeless = log.contains("FATAL:  could not") || Instant::now() > deadline;
            assert!(!is_hopeless, "the server did not start: {log}");
            thread::sleep(Duration::from_millis(50));
        }
        database.sql(
            "postgres",
            &format!(
                "create role guarded login superuser password '{PASSWORD}'; create role weak login"
            ),
        );
        Some(database)
    }

    /// Creates a database and returns its name.
    pub(crate) fn fresh(&self) -> String {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        let name = format!("plants{number}");
        self.sql("postgres", &format!("create database {name}"));
        name
    }

    /// Returns the address of `table` in `database`.
    pub(crate) fn address(&self, database: &str, table: &str) -> String {
        self.address_of("postgres@127.0.0.1", database, table)
    }

    pub(crate) fn address_of(&self, user: &str, database: &str, table: &str) -> String {
        format!("postgres://{user}:{}/{database}?table={table}", self.port)
    }

    pub(crate) fn socket_folder(&self) -> &Path {
        &self.folder
    }

    fn try_sql(&self, database: &str, sql: &str) -> std::process::Output {
        let mut psql = Run::new("psql");
        psql.args([
            "-X",
            "-A",
            "-t",
            "-q",
            "-v",
            "ON_ERROR_STOP=1",
            "-U",
            "postgres",
        ])
        .arg("-h")
        .arg(&self.folder)
        .args(["-p", &self.port.to_string(), "-d", database, "-c", sql])
        .env("PGTZ", "UTC");
        psql.raw()
    }

    /// Runs `sql` with psql and returns its output.
    pub(crate) fn sql(&self, database: &str, sql: &str) -> String {
        let output = self.try_sql(database, sql);
        let output_text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{sql}: {output_text}");
        String::from_utf8(output.stdout)
            .unwrap()
            .trim_end()
            .to_owned()
    }

    /// Kills the server without a clean shutdown.
    pub(crate) fn kill(&self) {
        let pid = fs::read_to_string(self.folder.join("data/postmaster.pid")).unwrap();
        let pid = pid.lines().next().unwrap().to_owned();
        succeed(Run::new("kill").args(["-QUIT", &pid]));
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // Only for a server of a single test; the shared one stops with the run.
        drop(self.keeper.stdin.take());
        self.keeper.wait();
    }
}

/// Finds the folder with the PostgreSQL programs.
fn programs() -> Option<PathBuf> {
    let has_all = |folder: &PathBuf| {
        ["initdb", "postgres"]
            .iter()
            .all(|name| folder.join(name).is_file())
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    folders
        .iter()
        .find(|folder| folder.join("psql").is_file())?;
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let versions = versions.flatten().map(|version| version.path().join("bin"));
    folders.into_iter().chain(versions).find(has_all)
}

fn is_root() -> bool {
    let id = Run::new("id").arg("-u").raw();
    id.stdout == b"0\n"
}

/// Returns a command that does not run as root, because PostgreSQL refuses that.
pub(crate) fn unprivileged(program: &Path) -> Run {
    if !is_root() {
        return Run::new(program);
    }
    let mut command = Run::new("setpriv");
    command
        .args(["--reuid=postgres", "--regid=postgres", "--clear-groups"])
        .arg(program)
        .current_dir("/");
    command
}

fn succeed(command: &mut Run) {
    let output = command.raw();
    let mut output_text = output.stdout;
    output_text.write_all(&output.stderr).unwrap();
    let output_text = String::from_utf8_lossy(&output_text);
    assert!(output.status.success(), "{command:?}: {output_text}");
}
