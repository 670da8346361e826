//! `sync` over time.
