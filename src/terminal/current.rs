//! Where a run writes, and how: one value per run, known to each of its threads.
//!
//! The log and the panic hook have no argument for it, so each thread of a run keeps it.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::io::{self, IsTerminal as _, Write};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anstream::{AutoStream, ColorChoice};
use clap::ValueEnum;
use indicatif::ProgressBar;
use log::LevelFilter;
use parking_lot::{Mutex, MutexGuard};
#[cfg(unix)]
use rustix::termios::{OptionalActions, Termios, tcsetattr};

use super::secrets::KnownSecrets;

thread_local! {
    static THREAD: Thread = const { Thread {
        terminal: RefCell::new(None),
        expects_panic: Cell::new(false),
    } };
}

/// What a thread knows.
pub(super) struct Thread {
    terminal: RefCell<Option<Terminal>>,
    /// Whether the caller handles a panic on this thread.
    pub(super) expects_panic: Cell<bool>,
}

/// Runs `work` on what this thread knows; `None` if the thread is ending.
pub(super) fn with_thread<T>(work: impl FnOnce(&Thread) -> T) -> Option<T> {
    THREAD.try_with(work).ok()
}

/// The streams of a run, and how to write to them. Clones share everything.
#[derive(Clone, Default)]
pub(crate) struct Terminal(Arc<Shared>);

struct Shared {
    color: When,
    message_format: MessageFormat,
    started: Instant,
    state: Mutex<State>,
    secrets: Mutex<KnownSecrets>,
    /// Collects what is written, instead of the streams of the process.
    captured: Option<[Arc<Mutex<Vec<u8>>>; 2]>,
}

/// What changes in the course of a run.
pub(super) struct State {
    /// The progress line on the screen, if any. Other lines must not overwrite it.
    pub(super) progress: Option<ProgressBar>,
    /// The least important messages that are shown, if any.
    pub(super) shown: Option<Level>,
    /// How many warnings there were, shown or not, and the first of them.
    pub(super) warnings: u64,
    pub(super) first_warnings: Vec<String>,
    pub(super) question: Question,
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            color: When::default(),
            message_format: MessageFormat::default(),
            started: Instant::now(),
            state: Mutex::default(),
            secrets: Mutex::default(),
            captured: None,
        }
    }
}

impl Default for State {
    fn default() -> Self {
        Self {
            progress: None,
            shown: Some(Level::Note),
            warnings: 0,
            first_warnings: Vec::new(),
            question: Question::default(),
        }
    }
}

impl Terminal {
    /// Returns the streams of the process. Needed before the command line is parsed, so that usage errors have the right
    /// format too.
    pub(crate) fn new(color: When, message_format: MessageFormat) -> Self {
        Self(Arc::new(Shared {
            color,
            message_format,
            ..Shared::default()
        }))
    }

    /// Returns a terminal that collects what is written.
    #[cfg(test)]
    pub(crate) fn captured(message_format: MessageFormat) -> Self {
        Self(Arc::new(Shared {
            message_format,
            captured: Some(<[_; 2]>::default()),
            ..Shared::default()
        }))
    }

    /// Returns what was written to standard output and standard error.
    #[cfg(test)]
    pub(crate) fn written(&self) -> [String; 2] {
        let captured = self.0.captured.as_ref().expect("a captured terminal");
        captured.each_ref().map(|stream| {
            let bytes = stream.lock();
            String::from_utf8_lossy(&bytes).into_owned()
        })
    }

    /// Shows messages of this level and more important ones; `None` hides all of them.
    pub(crate) fn show(&self, level: Option<Level>) {
        self.state().shown = level;
        // Warnings are counted, shown or not, and another run in this process may log more.
        let logged = match level {
            Some(Level::Debug) => LevelFilter::Debug,
            Some(Level::Info) => LevelFilter::Info,
            _ => LevelFilter::Warn,
        };
        log::set_max_level(logged.max(log::max_level()));
    }

    /// Makes this the terminal of this thread, until the returned value is dropped.
    pub(crate) fn enter(&self) -> Entered {
        Entered(set_current(Some(self.clone())))
    }

    /// Makes this the terminal of this thread, for good.
    pub(crate) fn attach(&self) {
        set_current(Some(self.clone()));
    }

    pub(super) fn message_format(&self) -> MessageFormat {
        self.0.message_format
    }

    /// Returns how long the run has taken so far.
    pub(super) fn elapsed(&self) -> Duration {
        self.0.started.elapsed()
    }

    pub(super) fn warnings(&self) -> u64 {
        self.state().warnings
    }

    /// Returns whether the streams of the process are not used.
    pub(super) fn is_captured(&self) -> bool {
        self.0.captured.is_some()
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock()
    }

    pub(super) fn shows(&self, level: Level) -> bool {
        Some(level) <= self.state().shown
    }

    pub(super) fn stdout(&self) -> Stdout {
        if let Some([stdout, _]) = &self.0.captured {
            return Stdout::Captured(Arc::clone(stdout));
        }
        Stdout::Process(io::stdout())
    }

    /// Returns whether to use colour on standard output.
    pub(super) fn stdout_color(&self) -> ColorChoice {
        match self.stdout() {
            Stdout::Process(stdout) => self.color_choice(AutoStream::choice(&stdout)),
            Stdout::Captured(_) => ColorChoice::Never,
        }
    }

    /// Writes a line to standard error, without its colours if colour is off. A failure is ignored: there is nowhere left
    /// to report it.
    pub(super) fn write_line(&self, line: &str) {
        if let Some([_, stderr]) = &self.0.captured {
            let line = anstream::adapter::strip_str(line);
            let _ = writeln!(Stdout::Captured(Arc::clone(stderr)), "{line}");
            return;
        }
        let stderr = io::stderr();
        let color = self.color_choice(AutoStream::choice(&stderr));
        let _ = writeln!(AutoStream::new(stderr, color).lock(), "{line}");
    }

    /// Writes a line to standard error, above the progress line.
    pub(super) fn write_beside_progress(&self, state: &State, line: &str) {
        match &state.progress {
            Some(bar) => bar.suspend(|| self.write_line(line)),
            None => self.write_line(line),
        }
    }

    /// Returns what `--color` says, or `auto`: it depends on the terminal, `NO_COLOR`, `CLICOLOR` and `TERM`.
    fn color_choice(&self, auto: ColorChoice) -> ColorChoice {
        match self.0.color {
            When::Auto => auto,
            When::Always => ColorChoice::Always,
            When::Never => ColorChoice::Never,
        }
    }
}

/// Returns the terminal of this thread. A thread that has none gets one with the streams of the process.
pub(super) fn current() -> Terminal {
    let current = |thread: &Thread| {
        let mut terminal = thread.terminal.borrow_mut();
        terminal.get_or_insert_default().clone()
    };
    with_thread(current).unwrap_or_default()
}

/// Starts a thread of the run of this one. It writes to the same streams, and conceals the same secrets.
pub(crate) fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    let terminal = current();
    thread::Builder::new().name(name.to_owned()).spawn(move || {
        terminal.attach();
        work()
    })
}

/// Uses the secrets of this run.
pub(crate) fn with_secrets<T>(work: impl FnOnce(&mut KnownSecrets) -> T) -> T {
    work(&mut current().0.secrets.lock())
}

/// Returns `text` with every secret of this run replaced by `…`. If escapes hide one, they are replaced as well.
pub(crate) fn conceal(text: &str) -> Cow<'_, str> {
    with_secrets(|known| known.conceal(text))
}

/// Like [`conceal`], but only credentials: for results with paths and IDs, which may be equal to a cursor.
pub(crate) fn conceal_credentials(text: &str) -> Cow<'_, str> {
    with_secrets(|known| known.conceal_credentials(text))
}

fn set_current(terminal: Option<Terminal>) -> Option<Terminal> {
    with_thread(|thread| thread.terminal.replace(terminal)).flatten()
}

/// A terminal that a thread has entered.
pub(crate) struct Entered(Option<Terminal>);

impl Drop for Entered {
    fn drop(&mut self) {
        set_current(self.0.take());
    }
}

/// Standard output.
pub(crate) enum Stdout {
    Process(io::Stdout),
    Captured(Arc<Mutex<Vec<u8>>>),
}

impl Stdout {
    pub(crate) fn is_terminal(&self) -> bool {
        match self {
            Self::Process(stdout) => stdout.is_terminal(),
            Self::Captured(_) => false,
        }
    }
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Process(stdout) => stdout.write(bytes),
            Self::Captured(captured) => {
                let mut captured = captured.lock();
                captured.write(bytes)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Process(stdout) => stdout.flush(),
            Self::Captured(_) => Ok(()),
        }
    }
}

/// Whether to use colour, or to show progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum When {
    // Only on a terminal.
    #[default]
    Auto,
    Always,
    Never,
}

/// How messages on standard error and some reports are written: for people or for programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum MessageFormat {
    #[default]
    Text,
    Json,
}

/// How important a message is, the most important first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Error,
    Warning,
    Note,
    Info,
    Debug,
}

impl Level {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
            Self::Info => "info",
            Self::Debug => "debug",
        }
    }
}

/// The question that waits for an answer, if any.
#[derive(Default)]
pub(super) struct Question {
    pub(super) is_open: bool,
    /// How the terminal was set before it hid what is typed.
    #[cfg(unix)]
    pub(super) before: Option<Termios>,
}

impl Question {
    /// Ends it, and shows again what is typed. Returns whether it was open.
    pub(super) fn end(&mut self) -> bool {
        #[cfg(unix)]
        if let Some(before) = self.before.take() {
            // A terminal that is gone needs no echo.
            let _ = tcsetattr(io::stdin(), OptionalActions::Now, &before);
        }
        std::mem::take(&mut self.is_open)
    }
}
