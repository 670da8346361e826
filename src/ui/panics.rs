//! A panic is a bug in trayscan: one line, exit code 1, and no secret on the way out.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Failure, Kind};

thread_local! {
    /// Whoever called what runs here knows what to make of a panic.
    static CONTAINED: Cell<bool> = const { Cell::new(false) };
}

/// Runs `work`, which is not ours and may panic where data is damaged; nothing where it did. What it
/// worked on must not be used again then.
pub(crate) fn contain<T>(work: impl FnOnce() -> T) -> Option<T> {
    CONTAINED.set(true);
    let done = panic::catch_unwind(AssertUnwindSafe(work));
    CONTAINED.set(false);
    done.ok()
}

/// Runs `work` and turns a panic in it, or carried into it from a task, into exit code 1.
pub(crate) fn guard(work: impl FnOnce() -> u8) -> u8 {
    static TOLD: AtomicBool = AtomicBool::new(false);

    panic::set_hook(Box::new(|info| {
        if CONTAINED.get() {
            return;
        }
        // The first panic is the cause; those that follow while unwinding only hide it.
        if !TOLD.swap(true, Ordering::Relaxed) {
            super::report(&describe(info).into());
        }
    }));
    panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Kind::Internal.code())
}

/// Says where it happened, and what only where the words are fixed in the source: a formatted
/// message may quote data, and data may be secret.
fn describe(info: &PanicHookInfo<'_>) -> Failure {
    let place = info.location().map_or_else(
        || "an unknown place".to_owned(),
        |location| format!("{}:{}", location.file(), location.line()),
    );
    let what = info.payload().downcast_ref::<&'static str>();
    let message = what.map_or_else(
        || format!("trayscan stopped at {place}"),
        |what| format!("trayscan stopped at {place}: {what}"),
    );
    let hint = "this is a bug in trayscan; please report it with the command that you ran";
    Failure::new(Kind::Internal, format!("{message}; {hint}"))
}
