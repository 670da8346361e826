//! Where the secret is stored, and how to read it.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::file::{expand_home, others_may_read, warn_readable};
use crate::client::bounded::ReadLimit;
use crate::error::{Failure, Kind};
use crate::secret::Secret;
use crate::terminal;

/// Where the secret is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SecretSource {
    Text(Secret),
    /// A path; `-` is standard input.
    File(String),
    /// Program and arguments; its output is the secret.
    Command(Vec<String>),
}

impl SecretSource {
    /// Returns the key of the setting.
    pub(super) fn key(&self) -> &'static str {
        match self {
            Self::Text(_) => "client_secret",
            Self::File(_) => "client_secret_file",
            Self::Command(_) => "client_secret_command",
        }
    }

    /// Reads the secret. `place` says where the setting is from.
    pub(super) fn read(&self, place: &str) -> Result<Secret, Failure> {
        match self {
            Self::Text(secret) => Ok(secret.clone()),
            Self::File(path) => {
                let text = read_file(path, place)?;
                let source = match path.as_str() {
                    "-" => format!("standard input ({place})"),
                    path => format!("`{path}` ({place})"),
                };
                secret_in(&text, &source)
            }
            Self::Command(command) => {
                let (text, messages) = run(command, place)?;
                let secret = secret_in(&text, &format!("the output of {place}"))?;
                log_messages(&messages, &secret);
                Ok(secret)
            }
        }
    }

    /// Warns if other users can read the file with the secret.
    pub(crate) fn warn_if_readable(&self) {
        let Self::File(path) = self else { return };
        if let Some(path) = stored_secret(path)
            && others_may_read(&path)
        {
            warn_readable(&path);
        }
    }
}

/// Returns the path of a file that stores the secret. `None` for standard input, a pipe, a device or an open file.
pub(crate) fn stored_secret(path: &str) -> Option<PathBuf> {
    let path = expand_home(path);
    let is_open = ["/dev", "/proc"]
        .iter()
        .any(|folder| path.starts_with(folder));
    (path != Path::new("-") && path.is_file() && !is_open).then_some(path)
}

/// Returns the secret in `text`, without the line ending and the byte order mark of some editors.
fn secret_in(text: &str, source: &str) -> Result<Secret, Failure> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let line = text
        .strip_suffix('\n')
        .map_or(text, |line| line.strip_suffix('\r').unwrap_or(line));
    if line.is_empty() {
        return Err(Failure::usage(
            format!("no client secret in {source}"),
            "it must contain the client secret and nothing else",
        ));
    }
    Ok(Secret::new(line))
}

fn read_file(path: &str, place: &str) -> Result<String, Failure> {
    let limit = ReadLimit::secret();
    let read = if path == "-" && terminal::can_ask() {
        terminal::ask_hidden("Client secret (hidden): ").map(Option::unwrap_or_default)
    } else if path == "-" {
        limit.read_text(|| Ok(io::stdin()))
    } else {
        let path = expand_home(path);
        limit.read_text(move || File::open(path))
    };
    read.map_err(|error| {
        let message = format!("cannot read the client secret from `{path}` ({place})");
        let hint = "it must be a file with the client secret and nothing else";
        Failure::usage(message, hint).caused_by(error)
    })
}

/// Runs a command and returns its standard output and standard error.
fn run(command: &[String], place: &str) -> Result<(String, String), Failure> {
    let failure = || Failure::new(Kind::Usage, format!("{place} failed"));
    let [program, args @ ..] = command else {
        return Err(failure().hint("it is empty"));
    };
    let printed = run_within(program, args, ReadLimit::secret()).map_err(|error| {
        failure().caused_by(error).hint(
            "run it by itself to see its error; it must print the secret and exit with code 0",
        )
    })?;
    // An error with the output in it could show the secret.
    let text = String::from_utf8(printed.stdout);
    let text = text.map_err(|_| {
        failure().hint("its output is not text in UTF-8; make it print only the secret")
    })?;
    let messages = String::from_utf8_lossy(&printed.stderr).into_owned();
    Ok((text, messages))
}

/// Logs what a command printed on standard error, without the secret.
fn log_messages(messages: &str, secret: &Secret) {
    let mut messages = messages.to_owned();
    // The log also conceals secrets, but not short ones or parts of one.
    for line in secret.expose().lines().filter(|line| !line.is_empty()) {
        messages = messages.replace(line, "…");
    }
    for line in messages.lines().filter(|line| !line.trim().is_empty()) {
        log::info!("client_secret_command: {line}");
    }
}

/// How often to check whether the command has ended.
const STEP: Duration = Duration::from_millis(5);
/// How long to wait for the rest of standard error after the command has ended.
const REST: Duration = Duration::from_millis(200);

/// What a command printed.
struct Printed {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

/// Runs `program` and returns what it printed; fails if it does, or goes past `limit`.
fn run_within(program: &str, args: &[String], limit: ReadLimit) -> io::Result<Printed> {
    let deadline = limit.time.map(|time| Instant::now() + time);
    let mut command = Command::new(program);
    command
        .args(args)
        .stdin(Stdio::inherit())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // At a terminal, another group than ours could not ask for a password.
    let has_group = cfg!(unix) && limit.time.is_some();
    #[cfg(unix)]
    if has_group {
        use std::os::unix::process::CommandExt as _;
        command.process_group(0);
    }
    let mut child = command.spawn()?;
    match watch(&mut child, limit, deadline) {
        Ok((status, printed)) if status.success() => Ok(printed),
        Ok((status, _)) => Err(io::Error::other(format!("it ended with {status}"))),
        Err(error) => {
            stop(&mut child, has_group);
            Err(error)
        }
    }
}

/// Waits until the command has ended and its standard output is closed.
fn watch(
    child: &mut Child,
    limit: ReadLimit,
    deadline: Option<Instant>,
) -> io::Result<(ExitStatus, Printed)> {
    let left = || deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
    let stderr = Stderr::of(child.stderr.take(), limit.bytes)?;
    let explained = |error: io::Error| match error.kind() {
        io::ErrorKind::TimedOut => limit.too_slow(),
        io::ErrorKind::FileTooLarge => {
            let why = format!("it printed more than {}", limit.size());
            io::Error::new(error.kind(), why)
        }
        _ => error,
    };
    let stdout = match child.stdout.take() {
        Some(stdout) => {
            let rest = ReadLimit {
                time: left(),
                ..limit
            };
            rest.read(move || Ok(stdout)).map_err(explained)?
        }
        None => Vec::new(),
    };
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if left() == Some(Duration::ZERO) {
            return Err(limit.too_slow());
        }
        thread::sleep(STEP);
    };
    let stderr = stderr.take();
    Ok((status, Printed { stdout, stderr }))
}

/// Ends the command, and what it started where it has a process group of its own.
fn stop(child: &mut Child, has_group: bool) {
    // If this fails, nothing more can be done.
    #[cfg(unix)]
    if has_group {
        use rustix::process::{Pid, Signal, kill_process_group};
        let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
    }
    let _ = (has_group, child.kill(), child.wait());
}

/// Standard error of a command, read while it runs so that it never has to wait; its start is kept.
struct Stderr {
    kept: Arc<Mutex<Vec<u8>>>,
    ended: mpsc::Receiver<()>,
}

impl Stderr {
    fn of(stderr: Option<impl Read + Send + 'static>, most: usize) -> io::Result<Self> {
        let kept = Arc::new(Mutex::new(Vec::new()));
        let (sender, ended) = mpsc::channel();
        let keeping = Arc::clone(&kept);
        terminal::spawn("command messages", move || {
            let mut piece = [0; 4096];
            let mut stderr = stderr;
            while let Some(Ok(length @ 1..)) = stderr.as_mut().map(|it| it.read(&mut piece)) {
                let mut kept = keeping.lock();
                let room = most.saturating_sub(kept.len());
                kept.extend_from_slice(&piece[..length.min(room)]);
            }
            // Dropping the sender signals the end.
            drop(sender);
        })?;
        Ok(Self { kept, ended })
    }

    /// Returns what was kept. Does not wait for child processes that keep standard error open.
    fn take(self) -> Vec<u8> {
        let _ = self.ended.recv_timeout(REST);
        std::mem::take(&mut self.kept.lock())
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn shell(line: &str, limit: ReadLimit) -> io::Result<Printed> {
        run_within("sh", &["-c".to_owned(), line.to_owned()], limit)
    }

    fn within(time: Duration) -> ReadLimit {
        ReadLimit {
            bytes: 1024,
            time: Some(time),
        }
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn both_streams_are_read() {
        let printed = shell("echo secret; echo note >&2", within(LONG)).expect("a secret");
        assert_eq!(printed.stdout, b"secret\n");
        assert_eq!(printed.stderr, b"note\n");
        let endless = "head -c 300000 /dev/zero >&2; echo secret";
        let printed = shell(endless, within(LONG)).expect("a secret");
        assert_eq!((printed.stdout.len(), printed.stderr.len()), (7, 1024));
    }

    #[test]
    fn a_command_that_fails_reports_only_its_exit_code() {
        let error = shell("echo hunter2; echo hunter2 >&2; exit 3", within(LONG));
        let error = error.map(drop).expect_err("code 3");
        assert_eq!(error.to_string(), "it ended with exit status: 3");
    }

    #[test]
    fn too_much_ends_the_command() {
        let error = shell("cat /dev/zero", within(LONG)).map(drop);
        let error = error.expect_err("endless");
        assert_eq!(error.to_string(), "it printed more than 1 KiB");
    }

    /// Returns whether a process exists that is not merely waiting for its parent to look.
    fn is_running(process: &str) -> bool {
        let state = Command::new("ps")
            .args(["-o", "stat=", "-p", process])
            .output()
            .expect("ps");
        let state = String::from_utf8_lossy(&state.stdout).trim().to_owned();
        !state.is_empty() && !state.starts_with('Z')
    }

    #[test]
    fn a_command_that_does_not_end_is_stopped_with_its_children() {
        let folder = tempfile::tempdir().expect("a folder");
        let pids = folder.path().join("pids");
        for line in [
            // Standard output stays open, or is closed while the command goes on.
            format!("sleep 300 & echo $! $$ > {0}; wait", pids.display()),
            format!(
                "sleep 300 >&- 2>&- & echo $! $$ > {0}; exec >&- 2>&-; wait",
                pids.display()
            ),
        ] {
            let error = shell(&line, within(Duration::from_millis(300))).map(drop);
            let error = error.expect_err("it does not end");
            assert_eq!(error.to_string(), "it took longer than 300ms");
            let pids = std::fs::read_to_string(&pids).expect("two numbers");
            let pids: Vec<&str> = pids.split_whitespace().collect();
            assert_eq!(pids.len(), 2);
            let started = Instant::now();
            // A process without a parent is reaped by init, a moment later.
            while pids.iter().any(|pid| is_running(pid)) && started.elapsed() < LONG {
                thread::sleep(STEP);
            }
            for pid in pids {
                assert!(!is_running(pid), "{pid} of `{line}`");
            }
        }
    }

    #[test]
    fn what_a_command_leaves_behind_is_not_waited_for() {
        let folder = tempfile::tempdir().expect("a folder");
        let pid = folder.path().join("pid");
        // It keeps standard error open, as a daemon might.
        let line = format!("sleep 300 >&- & echo $! > {}; echo secret", pid.display());
        let printed = shell(&line, within(LONG)).expect("a secret");
        assert_eq!(printed.stdout, b"secret\n");
        let pid = std::fs::read_to_string(&pid).expect("a number");
        assert!(is_running(pid.trim()), "it may be of use to others");
        let killed = Command::new("kill").arg(pid.trim()).status();
        assert!(killed.expect("kill").success());
    }

    #[test]
    fn secrets_hide_from_debug() {
        assert!(!format!("{:?}", SecretSource::Text(Secret::new("hunter2"))).contains("hunter2"));
    }
}
