//! Walks a window in the right version, page by page.

use super::session::WalkOptions;
use super::step::{WalkStep, WindowEnd};
use super::v1::{V1Seconds, V1Walk};
use super::v2::V2Walk;
use super::window::{self, WalkMode, WindowHint};
use crate::batch::range::Range;
use crate::client::Version;

/// A walk over one window.
pub(super) enum Walk {
    V1(V1Walk),
    V1Seconds(V1Seconds),
    V2(Box<V2Walk>),
}

impl Walk {
    pub(super) fn new(options: WalkOptions, window: Range, mode: WalkMode) -> Self {
        if options.version == Version::V2 {
            return Self::V2(Box::new(V2Walk::new(options, window, mode)));
        }
        let hint = match mode {
            WalkMode::V1(hint) => hint,
            _ => WindowHint::default(),
        };
        let is_split = mode != WalkMode::Full;
        match window::halves(&window) {
            Some(halves) => Self::V1(V1Walk::new(options, window, halves, hint, is_split)),
            None => Self::V1Seconds(V1Seconds::new(options, window)),
        }
    }

    /// Returns the next page, or how the walk ended. Must not be called after the end.
    pub(super) async fn next(&mut self) -> WalkStep {
        let step = match self {
            Self::V1(walk) => walk.next().await,
            Self::V1Seconds(walk) => walk.next().await,
            Self::V2(walk) => walk.next().await,
        };
        step.unwrap_or_else(|failure| WalkStep::End(WindowEnd::Failed(failure)))
    }
}
