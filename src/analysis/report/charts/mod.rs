//! The charts of the report. Each function takes figures and labels and returns an SVG image as text.
//!
//! Which figures to show is decided by the sections of the page (`cells.rs`, `crops.rs`, `trends.rs`, `dots.rs`,
//! `control.rs`). Shapes and axes are in `svg.rs`.

#![allow(clippy::cast_precision_loss, reason = "counts on a page are small")]

mod boxes;
mod control;
mod losses;
mod scatter;
mod trend;

// Shared by the charts.
mod layout;

pub(super) use boxes::{BoxPlot, boxes, scale as boxes_scale};
pub(super) use control::{ControlLimits, ControlPoint, control};
pub(super) use layout::Spread;
pub(super) use losses::{Loss, losses};
pub(super) use scatter::{Scatter, ScatterPoint, scatter};
pub(super) use trend::{TrendChart, spark, trend};
