//! The scatter chart of germination and usable rate: a dot per batch, and a table of the largest gaps.

use std::collections::BTreeMap;

use super::chart::{Chart, crop_name};
use super::charts::{Scatter, ScatterPoint, scatter};
use super::format::to_f64;
use super::gather::{Density, ReportData};
use super::outliers::usual_least;
use super::svg::{AltText, rounded_out};
use crate::analysis::statistics::{Decimal, Period, two_digits};
use crate::text;

/// The maximum number of dots in the chart, to limit the size of the page.
const MAX_DOTS: usize = 400;
/// The maximum size of their links and tooltips, in bytes. Links can be long.
const MAX_DOTS_SIZE: usize = 256 * 1024;
/// The maximum number of rows in the table, and the maximum size of their links in bytes.
const MAX_ROWS: usize = 50;
const MAX_ROWS_SIZE: usize = 64 * 1024;

/// A dot and its row in the table.
struct Dot {
    point: ScatterPoint,
    gap: Decimal,
    cells: Vec<String>,
}

pub(super) fn chart(data: &ReportData, newest: Option<Period>) -> Option<Chart> {
    let dots = dots(data, newest);
    if dots.is_empty() {
        return None;
    }
    let is_crowded = data.rated > dots.len() as u64;
    let density = data.density();
    let scale = scale(&density, &dots, is_crowded);
    let (rows_caption, rows, links) = table(&dots);
    let points: Vec<ScatterPoint> = dots.into_iter().map(|dot| dot.point).collect();
    let beyond = beyond(data.rated, &density, &points, is_crowded, scale);
    let legend = legend(data, &points, is_crowded, beyond);
    let below = points
        .iter()
        .filter(|point| point.germination - point.usable > 10.0)
        .count() as u64;
    let words = AltText {
        id: "scatter",
        title: "Germination rate against usable rate, one dot per batch",
        description: &format!(
            "Both in percent. On the diagonal, every germinated seedling is usable. Of {}, {below} are more than 10 points below it.",
            text::count(points.len() as u64, "dot", "dots"),
        ),
    };
    let empty = BTreeMap::new();
    let svg = scatter(&Scatter {
        words,
        points: &points,
        density: if is_crowded { &density } else { &empty },
        scale,
    });
    Some(Chart {
        caption: "Germination against usable".to_owned(),
        aside: aside(data, &points, is_crowded),
        legend,
        svg,
        rows_caption,
        head: vec!["batch", "crop", "germination %", "usable %", "gap, points"],
        rows,
        links,
    })
}

fn dots(data: &ReportData, newest: Option<Period>) -> Vec<Dot> {
    let scans = data.recent.scans().iter();
    let dots = scans.filter_map(|scan| {
        let (germination, usable) = scan.germination_rate.zip(scan.usable_rate)?;
        let (name, crop) = (scan.name(), crop_name(scan.crop()));
        let (all, some) = (two_digits(germination), two_digits(usable));
        let gap = germination - usable;
        Some(Dot {
            point: ScatterPoint {
                germination: to_f64(germination),
                usable: to_f64(usable),
                tooltip: format!("{name}, {crop}: germination {all} %, usable {some} %"),
                link: scan.link(),
                is_new: Some(data.history.step.period(scan.created)) == newest,
            },
            cells: vec![name, crop, all, some, two_digits(gap)],
            gap,
        })
    });
    dots.take(MAX_DOTS)
        .scan(0, |size, dot| {
            *size += dot.point.size();
            (*size <= MAX_DOTS_SIZE).then_some(dot)
        })
        .collect()
}

/// Returns the caption, the rows and the links of the table of dots with the largest gap.
fn table(dots: &[Dot]) -> (String, Vec<Vec<String>>, Vec<Option<String>>) {
    let mut sorted: Vec<&Dot> = dots.iter().collect();
    // The sort is stable: with the same gap, the newest is first.
    sorted.sort_by_key(|dot| std::cmp::Reverse(dot.gap));
    let mut size = 0;
    let listed: Vec<&Dot> = sorted
        .into_iter()
        .take(MAX_ROWS)
        .take_while(|dot| {
            size += dot.point.size();
            size <= MAX_ROWS_SIZE
        })
        .collect();
    let caption = if listed.len() == dots.len() {
        "As a table, largest gap first".to_owned()
    } else {
        format!(
            "The {} with the largest gap as a table",
            text::count(listed.len() as u64, "dot", "dots")
        )
    };
    let rows = listed.iter().map(|dot| dot.cells.clone()).collect();
    let links = listed.iter().map(|dot| dot.point.link.clone()).collect();
    (caption, rows, links)
}

/// Returns the scale for both rates, in whole percent, up to 100.
fn scale(density: &Density, dots: &[Dot], is_crowded: bool) -> (f64, f64) {
    let squares = density.iter();
    let squares = squares.map(|((all, usable), count)| (f64::from(*all.min(usable)), *count));
    let points = dots.iter().map(|dot| &dot.point);
    let points = points.map(|point| (point.germination.min(point.usable), 1));
    let values = if is_crowded {
        squares.collect()
    } else {
        points.collect()
    };
    let least = usual_least(values).unwrap_or(100.0).clamp(0.0, 99.0);
    (rounded_out(least, 100.0, 5).0.floor(), 100.0)
}

/// Counts the batches beyond the scale, and those of them with an impossible rate.
fn beyond(
    rated: u64,
    density: &Density,
    points: &[ScatterPoint],
    is_crowded: bool,
    scale: (f64, f64),
) -> (u64, u64) {
    let possible: u64 = density.values().sum();
    let beyond = if is_crowded {
        let squares = density.iter();
        let within = squares.filter(|((all, usable), _)| f64::from(*all.min(usable)) >= scale.0);
        rated - within.map(|(_, count)| count).sum::<u64>()
    } else {
        points.iter().filter(|point| point.is_beyond(scale)).count() as u64
    };
    (beyond, rated - possible)
}

fn legend(
    data: &ReportData,
    points: &[ScatterPoint],
    is_crowded: bool,
    (beyond, impossible): (u64, u64),
) -> Vec<(&'static str, String)> {
    let mut legend = Vec::new();
    if points.iter().any(|point| point.is_new) {
        legend.push(("now", format!("newest {}", data.step_words().one)));
    }
    if points.iter().any(|point| !point.is_new) {
        legend.push(("spot", "others".to_owned()));
    }
    if is_crowded {
        legend.push((
            "crowd",
            "all batches; each stronger shade means four times as many".to_owned(),
        ));
    }
    if beyond > 0 {
        let batches = text::count(beyond, "batch", "batches");
        let impossible = match impossible {
            0 => String::new(),
            count => format!(", {count} with a rate below 0 or above 100 %"),
        };
        legend.push((
            "edge",
            format!("diamond with a number: beyond the scale ({batches}{impossible})"),
        ));
    }
    legend
}

fn aside(data: &ReportData, points: &[ScatterPoint], is_crowded: bool) -> String {
    let linked = points.iter().filter(|point| point.link.is_some()).count();
    let note = match linked {
        0 => "",
        _ if linked < points.len() => "; dots link to their analysis if there is one",
        _ => "; each dot links to its analysis",
    };
    let batches = text::count(data.rated, "batch", "batches");
    if is_crowded {
        format!("newest {} of {batches} as dots{note}", points.len())
    } else {
        format!("{batches}{note}")
    }
}
