//! The measurements, one file per subject.

// Exports to files, against curl, a raw client and jq; and how their time grows.
mod files;

// Slow answers and narrow links.
mod latency;

// The most memory that is resident.
mod memory;

// The service, against a bare server.
mod serve;

// The archive, against a bare program that inserts the same rows.
mod sync;

// What it takes to start, to be kept on a disk, and for each batch.
mod size;

use crate::setup::Setup;
use crate::table::Line;

/// Rounds of what is run in turn, an odd number so that there is one in the middle.
const ROUNDS: usize = 5;

type Row = (&'static str, fn(&Setup) -> Vec<Line>);

/// The rows by name, in the order of the table.
pub(crate) const ROWS: [Row; 15] = [
    ("ndjson", files::ndjson),
    ("json", files::json),
    ("csv", files::csv),
    ("v1", files::version_1),
    ("jq", files::jq),
    ("growth", files::growth),
    ("memory-1", memory::one_worker),
    ("memory-8", memory::eight_workers),
    ("latency", latency::one_worker),
    ("parallel", latency::workers),
    ("link", latency::link),
    ("start-up", size::start_up),
    ("callgrind", size::callgrind),
    ("serve", serve::serve),
    ("sync", sync::sync),
];
