//! Something of each version.

use std::ops::{Index, IndexMut};

use crate::client::Version;

#[derive(Clone, Debug, Default)]
pub(crate) struct BothVersions<T> {
    v1: T,
    v2: T,
}

impl<T> Index<Version> for BothVersions<T> {
    type Output = T;

    fn index(&self, version: Version) -> &T {
        match version {
            Version::V1 => &self.v1,
            Version::V2 => &self.v2,
        }
    }
}

impl<T> IndexMut<Version> for BothVersions<T> {
    fn index_mut(&mut self, version: Version) -> &mut T {
        match version {
            Version::V1 => &mut self.v1,
            Version::V2 => &mut self.v2,
        }
    }
}

/// Returns the version that `version` is not.
pub(super) fn other(version: Version) -> Version {
    match version {
        Version::V1 => Version::V2,
        Version::V2 => Version::V1,
    }
}
