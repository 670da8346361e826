//! The choices of `--color`, `--progress`, `--message-format`, `-q` and `-v`.

/// Whether to use colour, or to show progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum When {
    /// Only on a terminal.
    #[default]
    Auto,
    Always,
    Never,
}

/// How lines on standard error are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum MessageFormat {
    #[default]
    Text,
    Json,
}

/// How important a message is, the most important first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    Error,
    Warning,
    Note,
    Info,
    Debug,
}

impl Level {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
            Self::Info => "info",
            Self::Debug => "debug",
        }
    }
}
