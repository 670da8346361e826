//! What walking a window produces: pages, and then an end.

use super::decode::{DataIssues, DecodedPage};
use super::planner::WindowPlanner;
use super::window::WalkMode;
use crate::batch::page::FirstPageIds;
use crate::batch::range::Range;
use crate::client::ServiceError;
use crate::error::Failure;

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
