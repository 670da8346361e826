//! The choices of `--color`, `--progress` and `--error-format`.

/// Whether to use colour, or to show progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum When {
    /// Only on a terminal.
    #[default]
    Auto,
    Always,
    Never,
}

/// How errors are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ErrorFormat {
    #[default]
    Text,
    Json,
}
