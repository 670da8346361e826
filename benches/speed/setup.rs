//! Shared by all rows: servers, a folder for outputs, prepared commands.

use std::cell::RefCell;
use std::collections::HashSet;
use std::env;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::rc::Rc;

use tempfile::TempDir;

use crate::client;
use crate::programs::{self, Run};
use crate::server::{Server, TRAYSCAN};

pub(crate) struct Setup {
    /// Whether to include rows that need much time and memory.
    pub(crate) long: bool,
    /// A program to compare with.
    before: Option<String>,
    folder: TempDir,
    servers: RefCell<Vec<Rc<Server>>>,
    /// The exports whose output was checked.
    checked: RefCell<HashSet<String>>,
}

/// A file that is deleted on drop.
pub(crate) struct Output(pub(crate) PathBuf);

impl Drop for Output {
    fn drop(&mut self) {
        // The folder is deleted at the end anyway.
        let _ = fs::remove_file(&self.0);
    }
}

impl Setup {
    pub(crate) fn new(long: bool, before: Option<String>) -> Self {
        // In memory, so that the disk is not measured.
        let memory = Path::new("/dev/shm");
        let place = if memory.is_dir() {
            memory.to_owned()
        } else {
            env::temp_dir()
        };
        let folder = tempfile::Builder::new()
            .prefix("trayscan-speed-")
            .tempdir_in(place)
            .unwrap();
        fs::create_dir(folder.path().join("home")).unwrap();
        Self {
            long,
            before,
            folder,
            servers: RefCell::default(),
            checked: RefCell::default(),
        }
    }

    /// Returns the programs to measure: this one, and the one to compare with.
    pub(crate) fn programs(&self) -> Vec<&str> {
        [TRAYSCAN]
            .into_iter()
            .chain(self.before.as_deref())
            .collect()
    }

    /// Returns a service with this number of batches in pages of 1000, started on first use.
    pub(crate) fn server(&self, batches: usize, faults: &[&str]) -> Rc<Server> {
        self.server_if_known(batches, faults)
            .expect("these faults are known")
    }

    /// The same with faults; `None` if the service does not know one of them.
    pub(crate) fn server_if_known(&self, batches: usize, faults: &[&str]) -> Option<Rc<Server>> {
        let mut servers = self.servers.borrow_mut();
        if let Some(server) = servers
            .iter()
            .find(|server| server.batches == batches && server.faults == faults)
        {
            return Some(Rc::clone(server));
        }
        let server = Rc::new(Server::start(batches, faults)?);
        servers.push(Rc::clone(&server));
        Some(server)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns a command without the user's settings and proxies.
    pub(crate) fn command(&self, program: &str) -> Command {
        let home = self.path("home");
        let mut command = Command::new(programs::path(program));
        command
            .env_clear()
            .env("PATH", env::var_os("PATH").unwrap_or_default())
            .env("HOME", &home)
            .env("XDG_CONFIG_HOME", &home)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        command
    }

    /// Sets the address and credentials of the service for `command`.
    pub(crate) fn with_access(mut command: Command, server: &Server) -> Command {
        command
            .env("TRAYSCAN_BASE_URL", &server.base_url)
            .env("TRAYSCAN_CLIENT_ID", &server.id)
            .env("TRAYSCAN_CLIENT_SECRET", &server.secret);
        command
    }

    /// Returns an export to standard output, which is discarded.
    pub(crate) fn export_command(&self, server: &Server, arguments: &[&str]) -> Command {
        let mut command = Self::with_access(self.command(TRAYSCAN), server);
        command.args(["export", "-q"]).args(arguments);
        command
    }

    /// Runs an export to a file with this extension and deletes the file.
    pub(crate) fn export(&self, server: &Server, ending: &str, arguments: &[&str]) -> Run {
        self.export_kept(server, ending, arguments, programs::run).0
    }

    /// Runs an export to a file with this extension under `measure`; checks the file the first time.
    pub(crate) fn export_kept(
        &self,
        server: &Server,
        ending: &str,
        arguments: &[&str],
        measure: fn(&mut Command) -> Run,
    ) -> (Run, Output) {
        let output = Output(self.path(&format!("{}.{ending}", arguments.concat())));
        let mut command = self.export_command(server, arguments);
        let run = measure(command.arg("-o").arg(&output.0));
        let key = format!("{} {}", server.address, output.0.display());
        if self.checked.borrow_mut().insert(key) {
            let found = count(&output.0, ending);
            assert_eq!(found, server.batches, "batches in {ending} {arguments:?}");
        }
        (run, output)
    }

    /// Follows the cursor with a raw client in a separate process, discarding the bodies.
    pub(crate) fn follow(&self, server: &Server) -> Run {
        programs::run(&mut self.raw_client(server))
    }

    /// Follows the cursor in the same way and writes the unchanged bodies to a file.
    pub(crate) fn store(&self, server: &Server) -> Run {
        let output = Output(self.path("store"));
        programs::run(self.raw_client(server).arg(&output.0))
    }

    fn raw_client(&self, server: &Server) -> Command {
        let mut command = self.command(env::current_exe().unwrap().to_str().unwrap());
        command
            .arg(client::ROLE)
            .args([&server.address, &server.id, &server.secret]);
        command
    }

    /// Returns one curl command for all pages of version 2, or for the single response of version 1.
    ///
    /// It gets all addresses in advance and uses one connection. The bodies go to `target`.
    pub(crate) fn curl(&self, server: &Server, version: &str, target: &str) -> Command {
        let (mut client, token) = server.log_in(version);
        let mut targets = vec!["/v1/batches".to_owned()];
        if version == "v2" {
            targets.clear();
            client.walk(&token, |target, _| targets.push(target.to_owned()));
        }
        let mut config = format!("header = \"Authorization: Bearer {token}\"\n");
        for page in targets {
            let _ = writeln!(config, "url = \"{}{page}\"", server.base_url);
            let _ = writeln!(config, "output = \"{target}\"");
        }
        let path = self.path(&format!("curl-{version}-{}", server.batches));
        fs::write(&path, config).unwrap();
        let mut curl = self.command("curl");
        curl.args(["-q", "-sS", "--fail", "-K"]).arg(path);
        curl
    }
}

/// Counts the batches in an output.
fn count(path: &Path, ending: &str) -> usize {
    let mut file = BufReader::with_capacity(1 << 20, File::open(path).unwrap());
    if ending == "csv" {
        return csv::Reader::from_reader(file).byte_records().count();
    }
    let mut lines = 0;
    loop {
        let piece = file.fill_buf().unwrap();
        if piece.is_empty() {
            break;
        }
        lines += memchr::memchr_iter(b'\n', piece).count();
        let length = piece.len();
        file.consume(length);
    }
    // In an array each bracket has its own line.
    if ending == "json" { lines - 2 } else { lines }
}

/// Returns whether two outputs have the same bytes.
pub(crate) fn same(first: &Output, second: &Output) -> bool {
    let open = |output: &Output| BufReader::with_capacity(1 << 20, File::open(&output.0).unwrap());
    let (mut first, mut second) = (open(first), open(second));
    let (mut a, mut b) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    loop {
        let length = first.read(&mut a).unwrap();
        if length == 0 {
            return second.read(&mut b).unwrap() == 0;
        }
        if second.read_exact(&mut b[..length]).is_err() || a[..length] != b[..length] {
            return false;
        }
    }
}
