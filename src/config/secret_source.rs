//! Where the secret is stored, and how to read it.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::command;
use super::path::{expand_home, others_may_read, warn_readable};
use crate::client::bounded::ReadLimit;
use crate::error::{Failure, Kind};
use crate::secret::Secret;
use crate::terminal;

/// Where the secret is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SecretSource {
    Text(Secret),
    /// A path; `-` is standard input.
    File(String),
    /// Program and arguments; its output is the secret.
    Command(Vec<String>),
}

impl SecretSource {
    /// Returns the key of the setting.
    pub(super) fn key(&self) -> &'static str {
        match self {
            Self::Text(_) => "client_secret",
            Self::File(_) => "client_secret_file",
            Self::Command(_) => "client_secret_command",
        }
    }

    /// Reads the secret. `place` says where the setting is from.
    pub(super) fn read(&self, place: &str) -> Result<Secret, Failure> {
        match self {
            Self::Text(secret) => Ok(secret.clone()),
            Self::File(path) => {
                let text = read_file(path, place)?;
                let source = match path.as_str() {
                    "-" => format!("standard input ({place})"),
                    path => format!("`{path}` ({place})"),
                };
                secret_in(&text, &source)
            }
            Self::Command(command) => {
                let (text, messages) = run(command, place)?;
                let secret = secret_in(&text, &format!("the output of {place}"))?;
                log_messages(&messages, &secret);
                Ok(secret)
            }
        }
    }

    /// Warns if other users can read the file with the secret.
    pub(crate) fn warn_if_readable(&self) {
        let Self::File(path) = self else { return };
        if let Some(path) = stored_secret(path)
            && others_may_read(&path)
        {
            warn_readable(&path);
        }
    }
}

/// Returns the path of a file that stores the secret. `None` for standard input, a pipe, a device or an open file.
pub(crate) fn stored_secret(path: &str) -> Option<PathBuf> {
    let path = expand_home(path);
    let is_open = ["/dev", "/proc"]
        .iter()
        .any(|folder| path.starts_with(folder));
    (path != Path::new("-") && path.is_file() && !is_open).then_some(path)
}

/// Returns the secret in `text`, without the line ending and the byte order mark of some editors.
fn secret_in(text: &str, source: &str) -> Result<Secret, Failure> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let line = text
        .strip_suffix('\n')
        .map_or(text, |line| line.strip_suffix('\r').unwrap_or(line));
    if line.is_empty() {
        return Err(Failure::usage(
            format!("no client secret in {source}"),
            "it must contain the client secret and nothing else",
        ));
    }
    Ok(Secret::new(line))
}

fn read_file(path: &str, place: &str) -> Result<String, Failure> {
    let limit = ReadLimit::secret();
    let read = if path == "-" && terminal::can_ask() {
        terminal::ask_hidden("Client secret (hidden): ").map(Option::unwrap_or_default)
    } else if path == "-" {
        limit.read_text(|| Ok(io::stdin()))
    } else {
        let path = expand_home(path);
        limit.read_text(move || File::open(path))
    };
    read.map_err(|error| {
        let message = format!("cannot read the client secret from `{path}` ({place})");
        let hint = "it must be a file with the client secret and nothing else";
        Failure::usage(message, hint).caused_by(error)
    })
}

/// Runs a command and returns its standard output and standard error.
fn run(command: &[String], place: &str) -> Result<(String, String), Failure> {
    let failure = || Failure::new(Kind::Usage, format!("{place} failed"));
    let [program, args @ ..] = command else {
        return Err(failure().hint("it is empty"));
    };
    let printed = command::run(program, args, ReadLimit::secret()).map_err(|error| {
        failure().caused_by(error).hint(
            "run it by itself to see its error; it must print the secret and exit with code 0",
        )
    })?;
    // An error with the output in it could show the secret.
    let text = String::from_utf8(printed.stdout);
    let text = text.map_err(|_| {
        failure().hint("its output is not text in UTF-8; make it print only the secret")
    })?;
    let messages = String::from_utf8_lossy(&printed.stderr).into_owned();
    Ok((text, messages))
}

/// Logs what a command printed on standard error, without the secret.
fn log_messages(messages: &str, secret: &Secret) {
    let mut messages = messages.to_owned();
    // The log also conceals secrets, but not short ones or parts of one.
    for line in secret.expose().lines().filter(|line| !line.is_empty()) {
        messages = messages.replace(line, "…");
    }
    for line in messages.lines().filter(|line| !line.trim().is_empty()) {
        log::info!("client_secret_command: {line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_hide_from_debug() {
        assert!(!format!("{:?}", SecretSource::Text(Secret::new("hunter2"))).contains("hunter2"));
    }
}
