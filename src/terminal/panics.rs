//! Handles panics. A panic is a bug in trayscan: one line, exit code 1, and no secrets shown.

use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use super::current::{Terminal, with_thread};
use crate::error::{Failure, Kind};

/// The usual stack size of a main thread.
const STACK: usize = 8 << 20;
/// The longest wait for another thread to finish its panic message.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(2);

/// Runs `work` on its own thread. If any thread panics, runs `clean_up` and returns exit code 1.
///
/// The panicking thread is parked, and the caller ends the process. Unwinding would not always end the
/// program: other threads may wait for it forever, and the threads of a runtime abort.
pub(crate) fn guard(
    terminal: &Terminal,
    work: impl FnOnce() -> u8 + Send + 'static,
    clean_up: impl FnOnce(),
) -> u8 {
    super::stderr::install_logger();
    let _entered = terminal.enter();
    let is_reported = Arc::new(AtomicBool::new(false));
    let (sender, receiver) = mpsc::channel();
    let (reported, shown, panic_sender) = (is_reported.clone(), terminal.clone(), sender.clone());
    panic::set_hook(Box::new(move |info| {
        if with_thread(|thread| thread.expects_panic.get()) == Some(true) {
            return;
        }
        // Report only the first panic, which is the cause. Later ones must not end the process before
        // its message is written.
        if !reported.swap(true, Ordering::Relaxed) {
            let _entered = shown.enter();
            super::errors::report(&describe(info).into());
            // Fails only if the process is about to end.
            let _ = panic_sender.send(WorkEnd::Panicked);
        }
        loop {
            thread::park();
        }
    }));
    let shown = terminal.clone();
    let spawned = thread::Builder::new().stack_size(STACK).spawn(move || {
        shown.attach();
        let code = work();
        let _ = sender.send(WorkEnd::Returned(code));
    });
    if let Err(error) = spawned {
        let failure = Failure::new(Kind::Internal, "cannot start a thread").caused_by(error);
        return super::errors::report(&failure.into());
    }
    let mut end = receiver.recv().unwrap_or(WorkEnd::Panicked);
    if is_reported.load(Ordering::Relaxed) && matches!(end, WorkEnd::Returned(_)) {
        // Another thread panicked meanwhile and may still be writing its message.
        end = receiver.recv_timeout(MESSAGE_TIMEOUT).unwrap_or(end);
    }
    match end {
        WorkEnd::Returned(code) => code,
        WorkEnd::Panicked => {
            clean_up();
            Kind::Internal.code()
        }
    }
}

/// How the work ended.
#[derive(Clone, Copy)]
enum WorkEnd {
    Returned(u8),
    Panicked,
}

/// Runs `work` of a library that panics instead of returning an error. Returns the panic's message as
/// the error.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    let expect = |expects| with_thread(|thread| thread.expects_panic.replace(expects));
    let before = expect(true);
    let result = panic::catch_unwind(AssertUnwindSafe(work));
    expect(before.unwrap_or_default());
    result.map_err(|payload| match payload.downcast::<String>() {
        Ok(text) => *text,
        Err(payload) => payload
            .downcast_ref::<&str>()
            .map_or_else(String::new, |text| (*text).to_owned()),
    })
}

/// Names the place of the panic. Quotes the message only if it is a literal: a formatted message may
/// contain data, and data may be secret.
fn describe(info: &PanicHookInfo<'_>) -> Failure {
    let location = info.location().map_or_else(
        || "an unknown location".to_owned(),
        |location| format!("{}:{}", location.file(), location.line()),
    );
    let literal = info.payload().downcast_ref::<&'static str>();
    let message = literal.map_or_else(
        || format!("trayscan panicked at {location}"),
        |text| format!("trayscan panicked at {location}: {text}"),
    );
    let hint = "this is a bug in trayscan; please report it with the command that you ran";
    Failure::new(Kind::Internal, format!("{message}; {hint}"))
}
