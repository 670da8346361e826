//! Where the secret stands, and how it is read from there.

use std::io::Read as _;
use std::process::{Command, Stdio};

use super::{Secret, expand_home};
use crate::error::{Failure, Kind};

/// Where the secret stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SecretSource {
    Text(Secret),
    /// A path; `-` is standard input.
    File(String),
    /// Words to run; what it prints is the secret.
    Command(Vec<String>),
}

impl SecretSource {
    pub(super) fn is_empty(&self) -> bool {
        match self {
            Self::Text(secret) => secret.expose().is_empty(),
            Self::File(path) => path.is_empty(),
            Self::Command(words) => words.is_empty(),
        }
    }

    pub(super) fn read(&self) -> Result<Secret, Failure> {
        let (text, whence) = match self {
            Self::Text(secret) => return Ok(secret.clone()),
            Self::File(path) => (read_file(path)?, format!("`{path}`")),
            Self::Command(words) => (
                run(words)?,
                "the output of `client_secret_command`".to_owned(),
            ),
        };
        let secret = text.strip_suffix('\n').map_or(text.as_str(), |line| {
            line.strip_suffix('\r').unwrap_or(line)
        });
        if secret.is_empty() {
            return Err(
                Failure::new(Kind::Usage, format!("there is no secret in {whence}"))
                    .hint("it should hold the client secret and nothing else"),
            );
        }
        Ok(Secret::new(secret))
    }
}

fn read_file(path: &str) -> Result<String, Failure> {
    let read = if path == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(expand_home(path))
    };
    read.map_err(|error| {
        Failure::new(
            Kind::Usage,
            format!("cannot read the client secret from `{path}`"),
        )
        .caused_by(error)
    })
}

fn run(words: &[String]) -> Result<String, Failure> {
    let failure = || {
        Failure::new(
            Kind::Usage,
            "`client_secret_command` in the config file failed",
        )
    };
    let [program, args @ ..] = words else {
        return Err(failure().hint("it is empty"));
    };
    let output = Command::new(program)
        .args(args)
        .stdin(Stdio::inherit())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| failure().caused_by(error))?;
    if !output.status.success() {
        return Err(failure().caused_by(anyhow::anyhow!("it ended with {}", output.status)));
    }
    // What it printed is no text: saying more could say the secret.
    String::from_utf8(output.stdout).map_err(|_| failure().hint("what it prints is no text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_hide_from_debug() {
        assert!(!format!("{:?}", SecretSource::Text(Secret::new("hunter2"))).contains("hunter2"));
    }
}
