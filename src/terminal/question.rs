//! A question that waits for its answer, and how to end it without one.

#[cfg(unix)]
use rustix::termios::{OptionalActions, Termios, tcsetattr};

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
            let _ = tcsetattr(std::io::stdin(), OptionalActions::Now, &before);
        }
        std::mem::take(&mut self.is_open)
    }
}
