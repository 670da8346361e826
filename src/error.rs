//! Failures and their exit codes.
//!
//! Code that knows the class of a failure returns a [`Failure`]; callers add context with `anyhow`.
//! [`kind_of`] finds the class in the error chain, and `terminal` shows the message.

use std::error::Error;
use std::fmt;

/// The class of a failure. Scripts rely on the exit codes, so their meanings never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Internal,
    Usage,
    Credentials,
    Unavailable,
    Refused,
    Protocol,
    Output,
    Empty,
    Alarm,
    Locked,
    Unsafe,
    Hangup,
    Interrupted,
    Terminated,
    ClosedPipe,
}

impl Kind {
    pub(crate) const ALL: [Self; 15] = [
        Self::Internal,
        Self::Usage,
        Self::Credentials,
        Self::Unavailable,
        Self::Refused,
        Self::Protocol,
        Self::Output,
        Self::Empty,
        Self::Alarm,
        Self::Locked,
        Self::Unsafe,
        Self::Hangup,
        Self::Interrupted,
        Self::Terminated,
        Self::ClosedPipe,
    ];

    /// Exit code, name in JSON errors, and meaning. Errors, man pages and the README use this table.
    const fn row(self) -> (u8, &'static str, &'static str) {
        match self {
            Self::Internal => (1, "internal", "internal error; please report it"),
            Self::Usage => (
                2,
                "usage",
                "wrong usage or settings: flags, dates, config file, missing credentials; nothing was sent",
            ),
            Self::Credentials => (
                4,
                "credentials",
                "the service refused the credentials or the token (401, 403)",
            ),
            Self::Unavailable => (
                5,
                "unavailable",
                "the service could not be reached or was unavailable after all retries; safe to retry later",
            ),
            Self::Refused => (
                6,
                "refused",
                "the service refused the request (422 and other 4xx)",
            ),
            Self::Protocol => (
                7,
                "protocol",
                "the service sent a response that violates its interface, or verify found a difference",
            ),
            Self::Output => (
                8,
                "output",
                "the output could not be written (disk full, no permission, file exists, port in use, refused by the store or the database)",
            ),
            Self::Empty => (9, "empty", "nothing matched, with --fail-on-empty"),
            Self::Alarm => (
                10,
                "alarm",
                "an alarm that you asked for, with `sync --status --max-age` or `summary --fail-on`",
            ),
            Self::Locked => (
                11,
                "locked",
                "another run is using the archive or the lake; safe to retry later",
            ),
            Self::Unsafe => (
                13,
                "unsafe",
                "stopped for safety: untrusted TLS certificate, redirect to another origin, or plain http to another machine",
            ),
            Self::Hangup => (129, "hangup", "ended by SIGHUP"),
            Self::Interrupted => (130, "interrupted", "ended by SIGINT (Ctrl-C)"),
            Self::Terminated => (143, "terminated", "ended by SIGTERM"),
            Self::ClosedPipe => (
                141,
                "closed_pipe",
                "the reader closed the pipe early; the output is incomplete",
            ),
        }
    }

    pub(crate) const fn code(self) -> u8 {
        self.row().0
    }

    pub(crate) const fn name(self) -> &'static str {
        self.row().1
    }

    pub(crate) const fn meaning(self) -> &'static str {
        self.row().2
    }

    /// Returns whether the same command is safe to retry later.
    pub(crate) const fn retry_later(self) -> bool {
        matches!(self, Self::Unavailable | Self::Locked)
    }
}

/// The request that failed, for JSON errors.
#[derive(Debug)]
pub(crate) struct Sent {
    /// Method and path; never the query.
    pub(crate) request: String,
    pub(crate) status: Option<u16>,
    /// The `detail` in the response.
    pub(crate) detail: Option<serde_json::Value>,
}

/// A failure of a known class: what happened, why, and what to do next.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) kind: Kind,
    message: String,
    hint: Option<String>,
    cause: Option<anyhow::Error>,
    sent: Option<Box<Sent>>,
}

impl Failure {
    pub(crate) fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            hint: None,
            cause: None,
            sent: None,
        }
    }

    /// A mistake in what the user wrote, and what to write instead.
    pub(crate) fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(Kind::Usage, message).hint(hint)
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Returns the message and the hint.
    #[cfg(test)]
    pub(crate) fn into_texts(self) -> (String, String) {
        (self.message, self.hint.unwrap_or_default())
    }

    /// Replaces the message.
    pub(crate) fn with_message(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }

    /// Adds a hint: what to do next.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the request that failed.
    pub(crate) fn with_request(mut self, sent: Sent) -> Self {
        self.sent = Some(Box::new(sent));
        self
    }

    /// Returns the message and all causes on one line.
    pub(crate) fn with_causes(&self) -> String {
        let causes = anyhow::Chain::new(self).map(ToString::to_string);
        let causes: Vec<String> = causes.collect();
        causes.join(": ")
    }

    /// Adds the cause.
    pub(crate) fn caused_by(mut self, cause: impl Into<anyhow::Error>) -> Self {
        self.cause = Some(cause.into());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for Failure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.cause.as_ref().map(AsRef::as_ref)
    }
}

/// Returns the class of `error`: that of the outermost [`Failure`] in its chain.
pub(crate) fn kind_of(error: &anyhow::Error) -> Kind {
    failures(error)
        .next()
        .map_or(Kind::Internal, |failure| failure.kind)
}

/// Returns the outermost hint in the chain of `error`.
pub(crate) fn hint_of(error: &anyhow::Error) -> Option<&str> {
    failures(error).find_map(|failure| failure.hint.as_deref())
}

/// Returns the request in which `error` happened.
pub(crate) fn sent_of(error: &anyhow::Error) -> Option<&Sent> {
    failures(error).find_map(|failure| failure.sent.as_deref())
}

fn failures(error: &anyhow::Error) -> impl Iterator<Item = &Failure> {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<Failure>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context as _;

    #[test]
    fn the_class_and_the_hint_survive_added_context() {
        let failure = Failure::new(Kind::Output, "cannot write").hint("free some space");
        let error = Err::<(), _>(failure)
            .context("export stopped")
            .expect_err("a failure");
        assert_eq!(kind_of(&error), Kind::Output);
        assert_eq!(hint_of(&error), Some("free some space"));
    }

    #[test]
    fn an_error_of_no_known_class_is_internal() {
        assert_eq!(kind_of(&anyhow::anyhow!("odd")), Kind::Internal);
    }

    #[test]
    fn no_two_classes_share_a_code_or_a_name() {
        for (index, kind) in Kind::ALL.iter().enumerate() {
            for other in &Kind::ALL[index + 1..] {
                assert_ne!(kind.code(), other.code());
                assert_ne!(kind.name(), other.name());
            }
        }
    }
}
