//! The progress line, redrawn from the counters of the run. By default only on a terminal.

use std::io::{self, IsTerminal as _};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use console::Term;
use indicatif::{
    HumanBytes, HumanCount, HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle, TermLike,
};

use super::current::{Level, MessageFormat, Terminal, When, current, spawn};
use super::stats::Stats;
use crate::text::count;

/// Clears the line for good.
pub(super) fn stop(terminal: &Terminal) {
    // The painter uses the same lock, so it cannot draw the line again.
    if let Some(bar) = terminal.state().progress.take() {
        bar.finish_and_clear();
    }
}

/// Shows progress until it is dropped.
pub(crate) struct ProgressLine {
    terminal: Terminal,
    painter: Option<JoinHandle<()>>,
}

impl ProgressLine {
    /// Starts the line. `None` if it is off, standard error is not a terminal, or it would
    /// mix with the data.
    pub(crate) fn start(mode: When, data_on_terminal: bool, stats: &Arc<Stats>) -> Option<Self> {
        let terminal = current();
        let is_shown = match mode {
            When::Always => true,
            When::Never => false,
            When::Auto => {
                io::stderr().is_terminal()
                    && !data_on_terminal
                    && terminal.message_format() == MessageFormat::Text
                    && terminal.shows(Level::Note)
            }
        };
        if !is_shown {
            return None;
        }
        let target = match terminal.message_format() {
            MessageFormat::Text if io::stderr().is_terminal() => {
                ProgressDrawTarget::term_like(Box::new(NarrowTerm(Term::buffered_stderr())))
            }
            _ => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(None, target)
            .with_style(ProgressStyle::with_template("{spinner} {msg}").expect("a fixed template"));
        terminal.state().progress = Some(bar);
        let (shown, stats) = (terminal.clone(), Arc::clone(stats));
        let painter = spawn("progress", move || paint(&shown, &stats));
        Some(Self {
            terminal,
            painter: painter.ok(),
        })
    }
}

/// Redraws the line until it is stopped. Without a terminal, prints a new line each second instead.
fn paint(terminal: &Terminal, stats: &Stats) {
    let started = Instant::now();
    for tick in 0_u64.. {
        match &terminal.state().progress {
            Some(bar) if !bar.is_hidden() => {
                bar.set_message(describe(stats, started.elapsed()));
                bar.tick();
            }
            Some(_) if tick % 10 == 0 => {
                terminal.write_progress(&describe(stats, started.elapsed()));
            }
            Some(_) => {}
            None => return,
        }
        thread::sleep(Duration::from_millis(100));
    }
}

fn describe(stats: &Stats, elapsed: Duration) -> String {
    let batches = stats.batches.get();
    let millis = u64::try_from(elapsed.as_millis())
        .unwrap_or(u64::MAX)
        .max(1);
    let rate = batches.saturating_mul(1000) / millis;
    let done = stats
        .share()
        .map_or_else(String::new, |share| progress(share, elapsed));
    let mut line = format!(
        "{done}{} ({}/s), {}, {}, {}",
        count(batches, "batch", "batches"),
        HumanCount(rate),
        count(stats.pages.get(), "page", "pages"),
        HumanBytes(stats.bytes.get()),
        HumanDuration(elapsed),
    );
    if let Some(waiting) = stats.waiting() {
        line.push_str("; ");
        line.push_str(&waiting);
    }
    line
}

/// Returns the percentage done and, if it can be estimated, the time left.
fn progress(share: f64, elapsed: Duration) -> String {
    let percent = (share * 100.0).floor();
    let left = elapsed.mul_f64((1.0 - share) / share.max(1e-6));
    // Too early for a useful estimate.
    if share < 0.01 || elapsed < Duration::from_secs(1) {
        return format!("{percent} %: ");
    }
    format!("{percent} %, {} left: ", HumanDuration(left))
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        stop(&self.terminal);
        if let Some(painter) = self.painter.take() {
            // A panic of the painter is already reported.
            let _ = painter.join();
        }
    }
}

/// A terminal that leaves room for `^C` at the end of the line. The line fills the width, so that the terminal would
/// print it on the next line, and the wrong line would be cleared.
#[derive(Debug)]
struct NarrowTerm(Term);

impl TermLike for NarrowTerm {
    fn width(&self) -> u16 {
        TermLike::width(&self.0).saturating_sub(2)
    }

    fn height(&self) -> u16 {
        TermLike::height(&self.0)
    }

    fn move_cursor_up(&self, lines: usize) -> io::Result<()> {
        self.0.move_cursor_up(lines)
    }

    fn move_cursor_down(&self, lines: usize) -> io::Result<()> {
        self.0.move_cursor_down(lines)
    }

    fn move_cursor_right(&self, columns: usize) -> io::Result<()> {
        self.0.move_cursor_right(columns)
    }

    fn move_cursor_left(&self, columns: usize) -> io::Result<()> {
        self.0.move_cursor_left(columns)
    }

    fn write_line(&self, line: &str) -> io::Result<()> {
        self.0.write_line(line)
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        self.0.write_str(text)
    }

    fn clear_line(&self) -> io::Result<()> {
        self.0.clear_line()
    }

    fn flush(&self) -> io::Result<()> {
        self.0.flush()
    }
}
