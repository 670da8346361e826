//! What is made once per run and handed down.

/// What a run needs besides its own flags: made once, and handed down. Clones share everything.
#[derive(Clone, Default)]
pub(crate) struct Context {
    /// The settings from environment variables, by the names of their fields.
    pub(super) from_environment: Vec<String>,
}
