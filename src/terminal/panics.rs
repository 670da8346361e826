//! A panic is a bug in trayscan: one line, exit code 1, and no secret on the way out.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::error::{Failure, Kind};

/// As large as that of a main thread usually is.
const STACK: usize = 8 << 20;
/// The longest that a message of a panic is waited for.
const TELLING: Duration = Duration::from_secs(2);

/// Runs `work` on a thread of its own, and turns a panic on any thread into exit code 1, after `clean_up`.
///
/// The thread that panics is held, and the caller ends the process. Unwinding it instead would not always
/// end the program: others may wait for that thread for ever, and the threads of a runtime abort.
pub(crate) fn guard(work: impl FnOnce() -> u8 + Send + 'static, clean_up: fn()) -> u8 {
    static TOLD: AtomicBool = AtomicBool::new(false);

    let (tell, told) = mpsc::channel();
    let panicked = tell.clone();
    panic::set_hook(Box::new(move |info| {
        if EXPECTED.get() {
            return;
        }
        // The first panic is the cause; those that follow only hide it, and must not end the process before
        // its message is out.
        if !TOLD.swap(true, Ordering::Relaxed) {
            super::errors::report(&describe(info).into());
            // If nobody listens, the process is about to end.
            let _ = panicked.send(WorkEnd::Panicked);
        }
        loop {
            thread::park();
        }
    }));
    let working = thread::Builder::new().stack_size(STACK).spawn(move || {
        let code = work();
        let _ = tell.send(WorkEnd::Returned(code));
    });
    if let Err(error) = working {
        let failure = Failure::new(Kind::Internal, "cannot start a thread").caused_by(error);
        return super::errors::report(&failure.into());
    }
    let mut ended = told.recv().unwrap_or(WorkEnd::Panicked);
    if TOLD.load(Ordering::Relaxed) && matches!(ended, WorkEnd::Returned(_)) {
        // Another thread panicked meanwhile, and may still be telling.
        ended = told.recv_timeout(TELLING).unwrap_or(ended);
    }
    match ended {
        WorkEnd::Returned(code) => code,
        WorkEnd::Panicked => {
            clean_up();
            Kind::Internal.code()
        }
    }
}

/// How the work came to its end.
#[derive(Clone, Copy)]
enum WorkEnd {
    Returned(u8),
    Panicked,
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
