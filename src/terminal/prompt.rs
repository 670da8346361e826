//! Questions to a person at the terminal.
//!
//! A signal may arrive before the answer. The thread that reads it cannot be stopped then, so another one ends the
//! question with [`stop`].

use std::io::{self, IsTerminal as _, Write as _};

#[cfg(unix)]
use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};

use super::current::{MessageFormat, Terminal, current};
use crate::text::escape;

/// Returns whether there is a person to ask. A program that reads JSON messages is not asked.
pub(crate) fn can_ask() -> bool {
    let terminal = current();
    terminal.message_format() == MessageFormat::Text
        && !terminal.is_captured()
        && io::stdin().is_terminal()
}

/// Asks `question` and returns the answer; `None` if the input ended (Ctrl-D).
pub(crate) fn ask(question: &str) -> io::Result<Option<String>> {
    answer(question, |_| Ok(()), read_line)
}

/// Does the same, without showing what is typed.
pub(crate) fn ask_hidden(question: &str) -> io::Result<Option<String>> {
    answer(question, hide, read_hidden)
}

fn answer(
    question: &str,
    prepare: impl FnOnce(&Terminal) -> io::Result<()>,
    read: impl FnOnce() -> io::Result<String>,
) -> io::Result<Option<String>> {
    let terminal = current();
    // The answer may be typed as soon as the question is shown.
    let line = prepare(&terminal).and_then(|()| {
        terminal.state().question.is_open = true;
        write(&escape(question))?;
        read()
    });
    terminal.state().question.end();
    let line = line?;
    if line.is_empty() {
        // The next message must not start on the line of the question.
        write("\n")?;
        return Ok(None);
    }
    Ok(Some(line.trim_end_matches(['\r', '\n']).to_owned()))
}

fn read_line() -> io::Result<String> {
    let mut line = String::new();
    io::stdin().read_line(&mut line)?;
    Ok(line)
}

#[cfg(unix)]
use read_line as read_hidden;

#[cfg(not(unix))]
fn read_hidden() -> io::Result<String> {
    rpassword::read_password().map(|line| line + "\n")
}

/// Hides what is typed, until the question ends.
#[cfg(unix)]
fn hide(terminal: &Terminal) -> io::Result<()> {
    let before = tcgetattr(io::stdin())?;
    let mut hidden = before.clone();
    hidden.local_modes.remove(LocalModes::ECHO);
    hidden.local_modes.insert(LocalModes::ECHONL);
    terminal.state().question.before = Some(before);
    Ok(tcsetattr(io::stdin(), OptionalActions::Now, &hidden)?)
}

#[cfg(not(unix))]
fn hide(_: &Terminal) -> io::Result<()> {
    Ok(())
}

/// Ends a question that has no answer yet.
pub(super) fn stop(terminal: &Terminal) {
    if terminal.state().question.end() {
        // A failure is ignored: there is nowhere left to report it.
        let _ = write("\n");
    }
}

fn write(text: &str) -> io::Result<()> {
    let mut stderr = io::stderr();
    stderr.write_all(text.as_bytes())?;
    stderr.flush()
}
