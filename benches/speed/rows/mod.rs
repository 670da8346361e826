//! The measurements, one file per subject.

// The commands of the README.
mod build;

// Exports to files compared with curl, a raw client and jq, and how their time grows.
mod files;

// Heavy formats and options.
mod formats;

// Slow responses and narrow links.
mod latency;

// Peak resident memory.
mod memory;

// Other legal spellings of the same JSON.
mod shapes;

// `trayscan serve` compared with a minimal server.
mod serve;

// The archive compared with a minimal program that inserts the same rows.
mod sync;

// Start-up time, binary size, and bytes per batch.
mod size;

use crate::setup::Setup;
use crate::table::Line;

/// The number of rounds; odd, so that the median is one of them.
const ROUNDS: usize = 5;

type Row = (&'static str, fn(&Setup) -> Vec<Line>);

/// The rows by name, in table order.
pub(crate) const ROWS: [Row; 18] = [
    ("ndjson", files::ndjson),
    ("json", files::json),
    ("csv", files::csv),
    ("shapes", shapes::shapes),
    ("formats", formats::formats),
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
    ("build", build::build),
];
