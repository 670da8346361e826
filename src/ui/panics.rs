//! A panic is a bug in trayscan: one line, exit code 1, and no secret on the way out.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::{Failure, Kind};

/// Runs `work` and turns a panic in it, or carried into it from a task, into exit code 1.
pub(crate) fn guard(work: impl FnOnce() -> u8) -> u8 {
    static TOLD: AtomicBool = AtomicBool::new(false);

    panic::set_hook(Box::new(|info| {
        // The first panic is the cause; those that follow while unwinding only hide it.
        if !EXPECTED.get() && !TOLD.swap(true, Ordering::Relaxed) {
            super::report(&describe(info).into());
        }
    }));
    panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Kind::Internal.code())
}

thread_local! {
    /// A panic on this thread is dealt with by whoever asked for the work.
    static EXPECTED: Cell<bool> = const { Cell::new(false) };
}

/// Does `work` of a library that panics where it should return an error; returns what it said then.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    let before = EXPECTED.replace(true);
    let done = panic::catch_unwind(AssertUnwindSafe(work));
    EXPECTED.set(before);
    done.map_err(|what| match what.downcast::<String>() {
        Ok(text) => *text,
        Err(what) => what
            .downcast_ref::<&str>()
            .map_or_else(String::new, |text| (*text).to_owned()),
    })
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
