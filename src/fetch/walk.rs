//! What a walk over a window needs, and what it produces: pages, and then an end.

use std::sync::Arc;

use super::decode::{DataIssues, DecodedPage};
use super::planner::WindowPlanner;
use super::repeats::RepeatGuard;
use super::session::FetchSession;
use super::window::WalkMode;
use crate::batch::page::FirstPageIds;
use crate::batch::range::Range;
use crate::client::{ServiceError, Version};
use crate::error::Failure;

/// What all walks of a range have in common.
pub(super) struct WalkOptions {
    pub(super) session: Arc<FetchSession>,
    pub(super) range: Range,
    pub(super) version: Version,
    /// Whether the service may not have version 2.
    pub(super) may_be_missing: bool,
    /// Whether windows must have the order of one walk over the whole range.
    pub(super) is_ordered: bool,
    pub(super) repeat_guard: Arc<RepeatGuard>,
}

/// The next step of a walk.
pub(super) enum WalkStep {
    /// A page, or a part of a large one.
    Page(DecodedPage),
    End(WindowEnd),
}

/// How a walk ended.
pub(super) enum WindowEnd {
    /// All pages were returned. There may be issues with the window as a whole.
    Done(DataIssues),
    /// The window has too many batches: fetch these windows instead, in this order. If the batches of a first
    /// page are given, the windows must return them again.
    Split(Vec<(Range, WalkMode)>, FirstPageIds),
    /// The first page shows that there is work for several workers. The windows must return its batches again.
    Planned(WindowPlanner, FirstPageIds),
    /// Windows are not reliable, for this reason.
    Unreliable(&'static str),
    /// The service does not have the requested version.
    VersionMissing(ServiceError),
    Failed(Failure),
}
