//! The choice between always, never and automatic, for colour and for progress.

/// Whether to use colour, or to show progress.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum When {
    /// Only on a terminal.
    #[default]
    Auto,
    Always,
    Never,
}
