//! The progress line: on a terminal only, redrawn from what the run counts.

use std::io::{IsTerminal as _, Write as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use indicatif::{
    HumanBytes, HumanCount, HumanDuration, ProgressBar, ProgressDrawTarget, ProgressStyle,
};

use super::ProgressMode;
use super::stats::Stats;

/// The line that is shown now, so that other lines can step aside for it.
static SHOWN: Mutex<Option<ProgressBar>> = Mutex::new(None);

/// Prints with `print` while the line is out of the way.
pub(super) fn aside(print: impl FnOnce()) {
    match &*SHOWN.lock().unwrap_or_else(PoisonError::into_inner) {
        Some(bar) => bar.suspend(print),
        None => print(),
    }
}

/// Wipes the line, and lets nobody paint it again.
pub(super) fn stop() {
    // Painting happens under the same lock, so nothing is painted over the wiped line.
    if let Some(bar) = SHOWN.lock().unwrap_or_else(PoisonError::into_inner).take() {
        bar.finish_and_clear();
    }
}

/// Shows progress until it is dropped.
pub(crate) struct ProgressLine {
    painter: Option<JoinHandle<()>>,
}

impl ProgressLine {
    /// Starts the line, unless there is nobody to see it or it would run into the data.
    pub(crate) fn start(
        when: ProgressMode,
        data_on_terminal: bool,
        stats: &Arc<Stats>,
    ) -> Option<Self> {
        let wanted = match when {
            ProgressMode::Always => true,
            ProgressMode::Never => false,
            ProgressMode::Auto => {
                std::io::stderr().is_terminal()
                    && !data_on_terminal
                    && log::max_level() >= log::LevelFilter::Warn
            }
        };
        if !wanted {
            return None;
        }
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr())
            .with_style(ProgressStyle::with_template("{spinner} {msg}").expect("a fixed template"));
        *SHOWN.lock().unwrap_or_else(PoisonError::into_inner) = Some(bar);
        let stats = Arc::clone(stats);
        let painter = thread::Builder::new().spawn(move || paint(&stats));
        Some(Self {
            painter: painter.ok(),
        })
    }
}

/// Paints the line now and then, for as long as it is there. Where it was asked for and there is no
/// terminal to paint on, it is a line of its own each second.
fn paint(stats: &Stats) {
    let started = Instant::now();
    for tick in 0_u64.. {
        match &*SHOWN.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(bar) if !bar.is_hidden() => {
                bar.set_message(describe(stats, started.elapsed()));
                bar.tick();
            }
            Some(_) if tick % 10 == 0 => {
                // As with every other line: where this fails, nobody is left to be told.
                let _ = writeln!(anstream::stderr(), "{}", describe(stats, started.elapsed()));
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
        "{done}{} batches ({}/s), {} pages, {}, {}",
        HumanCount(batches),
        HumanCount(rate),
        HumanCount(stats.pages.get()),
        HumanBytes(stats.bytes.get()),
        HumanDuration(elapsed),
    );
    if let Some(waiting) = stats.waiting() {
        line.push_str("; ");
        line.push_str(&waiting);
    }
    line
}

/// Says how much is done, and how long the rest will take where that can be told.
fn progress(share: f64, elapsed: Duration) -> String {
    let percent = (share * 100.0).floor();
    let left = elapsed.mul_f64((1.0 - share) / share.max(1e-6));
    // Before that it is a guess about a guess.
    if share < 0.01 || elapsed < Duration::from_secs(1) {
        return format!("{percent} %: ");
    }
    format!("{percent} %, {} left: ", HumanDuration(left))
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        stop();
        if let Some(painter) = self.painter.take() {
            // It only paints; if it panicked, there is nothing to paint.
            let _ = painter.join();
        }
    }
}
