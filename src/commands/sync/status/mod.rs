//! `sync --status`: what an archive contains, which part is complete, and how its last runs ended.

mod run;

mod data;

// The status as text, as JSON, and as metrics.
mod json;
mod prometheus;
mod text;

// `--max-age`.
mod alarm;

pub(super) use run::run;
