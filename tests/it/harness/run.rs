//! Runs of the program and of other programs. Every wait has a limit.

use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead as _, BufReader, Cursor, Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::Service;

/// The longest that a test waits for a program or for a line of its output.
pub(crate) const LIMIT: Duration = Duration::from_secs(90);
/// Longer than a clean exit takes on a loaded machine, but shorter than the delays that the tests interrupt.
pub(crate) const SOON: Duration = Duration::from_secs(15);

/// A program to run, like [`Command`]. Its output is captured, it reads nothing, and it must end in time.
#[derive(Debug)]
pub(crate) struct Run {
    command: Command,
    limit: Duration,
}

/// Returns a run of trayscan in an empty environment.
pub(crate) fn trayscan(args: &[&str]) -> Run {
    let mut run = Run::new(env!("CARGO_BIN_EXE_trayscan"));
    // If `HOME` is unset, the program looks up the user's home directory and may read its config file.
    run.env_clear().env("HOME", "/nonexistent").args(args);
    run
}

/// Runs trayscan.
pub(crate) fn run(args: &[&str]) -> Output {
    trayscan(args).output()
}

impl Run {
    /// A run of any program, with the environment of the tests.
    pub(crate) fn new(program: impl AsRef<OsStr>) -> Self {
        #[cfg(unix)]
        catch_ignored_signals();
        let mut command = Command::new(program);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Self {
            command,
            limit: LIMIT,
        }
    }

    /// Returns the same run, started by `wrapper`, such as `strace` with its flags.
    pub(crate) fn under<A: AsRef<OsStr>>(&self, wrapper: &[A]) -> Self {
        let program = [self.command.get_program()];
        let mut words = wrapper.iter().map(AsRef::as_ref).chain(program);
        let mut run = Self::new(words.next().unwrap());
        run.args(words).args(self.command.get_args()).env_clear();
        let set = self.command.get_envs();
        run.envs(set.filter_map(|(name, value)| Some((name, value?))));
        if let Some(folder) = self.command.get_current_dir() {
            run.current_dir(folder);
        }
        run
    }

    /// Returns the same run under `strace`, which injects `fault` into the system calls `calls`.
    pub(crate) fn injecting(&self, calls: &str, fault: &str) -> Self {
        let (trace, inject) = (format!("trace={calls}"), format!("inject={calls}:{fault}"));
        let to_nowhere = ["strace", "-f", "-o", "/dev/null"];
        self.under(&[&to_nowhere[..], &["-e", &trace, "-e", &inject]].concat())
    }

    pub(crate) fn arg(&mut self, arg: impl AsRef<OsStr>) -> &mut Self {
        self.command.arg(arg);
        self
    }

    pub(crate) fn args<A: AsRef<OsStr>>(&mut self, args: impl IntoIterator<Item = A>) -> &mut Self {
        self.command.args(args);
        self
    }

    pub(crate) fn env(&mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> &mut Self {
        self.command.env(name, value);
        self
    }

    pub(crate) fn envs<N: AsRef<OsStr>, V: AsRef<OsStr>>(
        &mut self,
        variables: impl IntoIterator<Item = (N, V)>,
    ) -> &mut Self {
        self.command.envs(variables);
        self
    }

    pub(crate) fn env_clear(&mut self) -> &mut Self {
        self.command.env_clear();
        self
    }

    #[cfg(feature = "cloud")]
    pub(crate) fn env_remove(&mut self, name: &str) -> &mut Self {
        self.command.env_remove(name);
        self
    }

    /// Sets the address and the credentials of `service`, and retries without a delay.
    pub(crate) fn service(&mut self, service: &(impl Service + ?Sized)) -> &mut Self {
        let [address, id, secret] = service.access();
        self.env("TRAYSCAN_BASE_URL", address)
            .env("TRAYSCAN_CLIENT_ID", id)
            .env("TRAYSCAN_CLIENT_SECRET", secret)
            .env("TRAYSCAN_RETRY_WAIT", "0s")
    }

    pub(crate) fn current_dir(&mut self, folder: impl AsRef<Path>) -> &mut Self {
        self.command.current_dir(folder);
        self
    }

    pub(crate) fn stdin(&mut self, source: impl Into<Stdio>) -> &mut Self {
        self.command.stdin(source);
        self
    }

    pub(crate) fn stdout(&mut self, target: impl Into<Stdio>) -> &mut Self {
        self.command.stdout(target);
        self
    }

    pub(crate) fn stderr(&mut self, target: impl Into<Stdio>) -> &mut Self {
        self.command.stderr(target);
        self
    }

    /// Replaces the longest time that the run may take.
    pub(crate) fn limit(&mut self, limit: Duration) -> &mut Self {
        self.limit = limit;
        self
    }

    pub(crate) fn start(&mut self) -> Running {
        self.try_start()
            .unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    fn try_start(&mut self) -> io::Result<Running> {
        let mut child = self.command.spawn()?;
        let what = self.command.get_program().to_os_string();
        let pipe = |source: Box<dyn Read + Send>| {
            BufReader::new(Pipe {
                what: what.clone(),
                limit: self.limit,
                source: Some(Mutex::new(source)),
                chunks: None,
                rest: Cursor::default(),
            })
        };
        Ok(Running {
            stdin: child.stdin.take(),
            stdout: child.stdout.take().map(|stdout| pipe(Box::new(stdout))),
            stderr: child.stderr.take().map(|stderr| pipe(Box::new(stderr))),
            what: format!("{:?}", self.command),
            limit: self.limit,
            child,
        })
    }

    /// Starts the program with every request logged.
    pub(crate) fn start_logged(&mut self) -> Running {
        self.arg("-vv").start()
    }

    /// Starts the program and waits for its third page.
    pub(crate) fn start_until_third_page(&mut self) -> Running {
        let mut running = self.start_logged();
        for _ in 0..3 {
            running.line_with("GET /v2/batches");
        }
        running
    }

    /// Runs the program to its end. Its output must be UTF-8.
    pub(crate) fn output(&mut self) -> Output {
        Output::of(self.raw())
    }

    /// Runs the program to its end, with `text` as its standard input. It may end before it has read that.
    pub(crate) fn output_for(&mut self, text: impl AsRef<[u8]>) -> Output {
        let mut running = self.stdin(Stdio::piped()).start();
        let mut stdin = running.stdin.take().unwrap();
        if let Err(error) = stdin.write_all(text.as_ref()) {
            assert_eq!(error.kind(), io::ErrorKind::BrokenPipe, "{error}");
        }
        drop(stdin);
        running.output()
    }

    /// Runs the program to its end and returns the bytes it wrote.
    pub(crate) fn raw(&mut self) -> std::process::Output {
        self.start().raw()
    }

    /// Like [`Self::raw`], but returns an error if the program is not installed.
    pub(crate) fn try_raw(&mut self) -> io::Result<std::process::Output> {
        Ok(self.try_start()?.raw())
    }

    /// Runs the program and returns whether it is installed and exited with code 0.
    pub(crate) fn succeeds(&mut self) -> bool {
        self.try_raw().is_ok_and(|output| output.status.success())
    }
}

/// The exit code and output of a finished run.
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Output {
    pub(crate) fn of(output: std::process::Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }

    /// Asserts that the exit code is `code`.
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        let shown: String = self.stdout.chars().take(2000).collect();
        assert_eq!(self.code, Some(code), "{}\n{shown}", self.stderr);
        self
    }

    /// Parses standard output as one JSON value.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Parses each line of standard output as a JSON value.
    #[track_caller]
    pub(crate) fn json_lines(&self) -> Vec<Value> {
        let parse = |line| serde_json::from_str(line);
        let values: Result<_, _> = self.stdout.lines().map(parse).collect();
        values.unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Returns the error object that `--message-format json` prints on the last line.
    #[track_caller]
    pub(crate) fn error(&self) -> Value {
        self.last_message()["error"].clone()
    }

    /// Returns the result that `--message-format json` prints on the last line.
    #[track_caller]
    pub(crate) fn result(&self) -> Value {
        self.last_message()["result"].clone()
    }

    #[track_caller]
    fn last_message(&self) -> Value {
        let last = self.stderr.lines().last().unwrap_or_default();
        serde_json::from_str(last).unwrap_or_else(|_| panic!("{self:?}"))
    }
}

/// A program that was started. It is killed on drop.
pub(crate) struct Running {
    child: Child,
    what: String,
    limit: Duration,
    pub(crate) stdin: Option<ChildStdin>,
    pub(crate) stdout: Option<BufReader<Pipe>>,
    pub(crate) stderr: Option<BufReader<Pipe>>,
}

impl Running {
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends the signal with this name, such as `INT`.
    pub(crate) fn signal(&self, name: &str) {
        let kill = format!("kill -{name} {}", self.pid());
        assert!(Run::new("sh").args(["-c", &kill]).succeeds(), "{kill}");
    }

    /// Sends it twice, a moment apart, as `timeout` does.
    pub(crate) fn signal_twice(&self, name: &str) {
        let kill = format!("kill -{name} {0}; sleep 0.02; kill -{name} {0}", self.pid());
        // The program may end before the second one.
        let _ = Run::new("sh").args(["-c", &kill]).succeeds();
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
    }

    /// Returns the next line of standard error, which is empty at its end.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.stderr.as_mut().unwrap().read_line(&mut line).unwrap();
        line
    }

    /// Reads standard error up to a line that contains `words`, and returns that line.
    #[track_caller]
    pub(crate) fn line_with(&mut self, words: &str) -> String {
        loop {
            let line = self.line();
            assert_ne!(line, "", "it ended without `{words}`");
            if line.contains(words) {
                return line;
            }
        }
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits for the program to exit. Returns `None` if it still runs after `time`.
    pub(crate) fn ends_within(&mut self, time: Duration) -> Option<ExitStatus> {
        let started = Instant::now();
        let mut pause = Duration::from_micros(100);
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return Some(status);
            }
            if started.elapsed() > time {
                return None;
            }
            thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(5));
        }
    }

    /// Waits for the program to exit.
    #[track_caller]
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let status = self.ends_within(self.limit);
        status.unwrap_or_else(|| panic!("no exit within {:?}: {}", self.limit, self.what))
    }

    /// Asserts that the program exits with `code` within [`SOON`], and returns the rest of standard error.
    #[track_caller]
    pub(crate) fn ends_soon_with(mut self, code: i32) -> String {
        let status = self.ends_within(SOON);
        assert_eq!(
            status.map(|status| status.code()),
            Some(Some(code)),
            "no exit within {SOON:?}, or the wrong code"
        );
        self.output().stderr
    }

    /// Reads the rest of the output and waits for the program to exit.
    pub(crate) fn output(self) -> Output {
        Output::of(self.raw())
    }

    fn raw(mut self) -> std::process::Output {
        drop(self.stdin.take());
        let read = |pipe: Option<BufReader<Pipe>>| {
            let mut bytes = Vec::new();
            pipe.map(|mut pipe| pipe.read_to_end(&mut bytes).unwrap());
            bytes
        };
        let stdout = self.stdout.take();
        let stdout = thread::spawn(move || read(stdout));
        let stderr = read(self.stderr.take());
        let stdout = stdout.join().unwrap();
        std::process::Output {
            status: self.wait(),
            stdout,
            stderr,
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The output of a running program, whose reads fail the test at the limit.
///
/// A thread reads it, from the first read on and one piece ahead, so the program still blocks on a full pipe.
/// The locks only make it `Sync`.
pub(crate) struct Pipe {
    what: OsString,
    limit: Duration,
    source: Option<Mutex<Box<dyn Read + Send>>>,
    chunks: Option<Mutex<Receiver<io::Result<Vec<u8>>>>>,
    rest: Cursor<Vec<u8>>,
}

impl Pipe {
    /// Returns the pipe without a limit. Nothing may have been read from it.
    pub(crate) fn unlimited(self) -> Box<dyn Read + Send> {
        self.source.unwrap().into_inner().unwrap()
    }
}

impl Read for Pipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.rest.read(buffer)?;
        if read > 0 || buffer.is_empty() {
            return Ok(read);
        }
        let chunks = self.chunks.get_or_insert_with(|| {
            let source = self.source.take().unwrap();
            let mut source = source.into_inner().unwrap();
            let (sender, receiver) = mpsc::sync_channel(0);
            thread::spawn(move || {
                let mut chunk = vec![0; 8192];
                loop {
                    let read = source.read(&mut chunk);
                    let is_last = !matches!(read, Ok(1..));
                    let piece = read.map(|length| chunk[..length].to_vec());
                    if sender.send(piece).is_err() || is_last {
                        return;
                    }
                }
            });
            Mutex::new(receiver)
        });
        match chunks.get_mut().unwrap().recv_timeout(self.limit) {
            Ok(chunk) => self.rest = Cursor::new(chunk?),
            Err(RecvTimeoutError::Disconnected) => return Ok(0),
            Err(RecvTimeoutError::Timeout) => {
                panic!("{} wrote nothing for {:?}", self.what.display(), self.limit)
            }
        }
        self.rest.read(buffer)
    }
}

/// Returns the programs of a Python environment with `packages`, which is installed once and kept between runs.
///
/// Returns `None`, with a message, if `modules` cannot be imported.
pub(crate) fn python(name: &str, packages: &str, modules: &str) -> Option<PathBuf> {
    static INSTALLING: Mutex<()> = Mutex::new(());
    let _one_at_a_time = INSTALLING.lock();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let programs = folder.join("bin");
    let import = format!("import {modules}");
    let is_there = || {
        Run::new(programs.join("python"))
            .args(["-c", &import])
            .succeeds()
    };
    if !is_there() {
        let steps = format!(
            "python3 -m venv '{0}' && '{0}/bin/pip' install -q {packages}",
            folder.display()
        );
        let mut install = Run::new("sh");
        install.args(["-c", &steps]).limit(Duration::from_secs(900));
        if !install.succeeds() || !is_there() {
            eprintln!("skipped: Python with {packages} is not available");
            return None;
        }
    }
    Some(programs)
}

/// Gives programs the default action of signals that the tests inherited as ignored.
///
/// `nohup` ignores SIGHUP, and a script ignores SIGINT in its background; a program inherits that, and the
/// tests that interrupt it would wait. A caught signal is not inherited, so the tests catch what was ignored.
#[cfg(unix)]
fn catch_ignored_signals() {
    use tokio::signal::unix::{SignalKind, signal};
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        // Where this file is missing, nothing changes.
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let ignored = ignored.map_or(0, |mask| u64::from_str_radix(mask.trim(), 16).unwrap());
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().unwrap();
        let _entered = runtime.enter();
        // The handlers stay. The standard library resets SIGPIPE.
        for kind in [
            SignalKind::hangup(),
            SignalKind::interrupt(),
            SignalKind::quit(),
            SignalKind::terminate(),
        ] {
            if ignored >> (kind.as_raw_value() - 1) & 1 == 1 {
                drop(signal(kind).unwrap());
            }
        }
    });
}
