//! Germination against usable seedlings: a dot per batch, and those with the largest gap as a table.

use std::collections::BTreeMap;

use super::chart::{Chart, crop_name};
use super::charts::{Scatter, ScatterPoint, scatter};
use super::format::{drawn, plural};
use super::gather::ReportData;
use super::outliers::usual_least;
use super::svg::{AltText, rounded_out};
use crate::analysis::statistics::{Decimal, Period, two_digits};

/// Dots in the chart, at most: each is a link, and a page has an end.
const SPOTS: usize = 400;
/// What their links and hints may take of the page, in bytes: links can be long.
const SPOTS_SIZE: usize = 256 * 1024;
/// Rows of the table, at most, and the bytes of their links.
const ROWS: usize = 50;
const ROWS_SIZE: usize = 64 * 1024;

/// A dot, and its row.
struct Dot {
    spot: ScatterPoint,
    gap: Decimal,
    cells: Vec<String>,
}

pub(super) fn chart(gathered: &ReportData, newest: Option<Period>) -> Option<Chart> {
    let dots = dots(gathered, newest);
    if dots.is_empty() {
        return None;
    }
    let is_crowded = gathered.rated > dots.len() as u64;
    let scale = scale(gathered, &dots, is_crowded);
    let (rows_caption, rows, links) = table(&dots);
    let spots: Vec<ScatterPoint> = dots.into_iter().map(|dot| dot.spot).collect();
    let beyond = beyond(gathered, &spots, is_crowded, scale);
    let legend = legend(gathered, newest, &spots, is_crowded, beyond);
    let below = spots
        .iter()
        .filter(|spot| spot.germination - spot.usable > 10.0)
        .count() as u64;
    let words = AltText {
        id: "scatter",
        title: "Germination rate against usable rate, one dot per batch",
        description: &format!(
            "Both in percent. On the diagonal every germinated seedling is usable; of {}, {below} more than 10 points below it.",
            plural(spots.len() as u64, "dot", "dots"),
        ),
    };
    let empty = BTreeMap::new();
    let svg = scatter(&Scatter {
        words,
        spots: &spots,
        crowd: if is_crowded { &gathered.crowd } else { &empty },
        scale,
    });
    Some(Chart {
        caption: "Germination against usable".to_owned(),
        aside: aside(gathered, &spots, is_crowded),
        legend,
        svg,
        rows_caption,
        head: vec!["batch", "crop", "germination %", "usable %", "gap, points"],
        rows,
        links,
    })
}

fn dots(gathered: &ReportData, newest: Option<Period>) -> Vec<Dot> {
    let scans = gathered.newest.sorted().into_iter();
    let dots = scans.filter_map(|scan| {
        let (germination, usable) = scan.germination_rate.zip(scan.usable_rate)?;
        let (name, crop) = (scan.name(), crop_name(scan.crop.as_deref()));
        let (all, some) = (two_digits(germination), two_digits(usable));
        let gap = germination - usable;
        Some(Dot {
            spot: ScatterPoint {
                germination: drawn(germination),
                usable: drawn(usable),
                hint: format!("{name}, {crop}: germination {all} %, usable {some} %"),
                link: scan.link.clone(),
                is_new: Some(gathered.step.period(scan.created)) == newest,
            },
            cells: vec![name, crop, all, some, two_digits(gap)],
            gap,
        })
    });
    dots.take(SPOTS)
        .scan(0, |taken, dot| {
            *taken += dot.spot.size();
            (*taken <= SPOTS_SIZE).then_some(dot)
        })
        .collect()
}

/// Returns the dots with the largest gap, and what the table of them is called.
fn table(dots: &[Dot]) -> (String, Vec<Vec<String>>, Vec<Option<String>>) {
    let mut sorted: Vec<&Dot> = dots.iter().collect();
    // Stable: the newest first where they are even.
    sorted.sort_by_key(|dot| std::cmp::Reverse(dot.gap));
    let mut size = 0;
    let listed: Vec<&Dot> = sorted
        .into_iter()
        .take(ROWS)
        .take_while(|dot| {
            size += dot.spot.size();
            size <= ROWS_SIZE
        })
        .collect();
    let caption = if listed.len() == dots.len() {
        "The same as a table, the largest gap first".to_owned()
    } else {
        format!(
            "The {} with the largest gap as a table",
            plural(listed.len() as u64, "dot", "dots")
        )
    };
    let rows = listed.iter().map(|dot| dot.cells.clone()).collect();
    let links = listed.iter().map(|dot| dot.spot.link.clone()).collect();
    (caption, rows, links)
}

/// One scale for both rates, in whole percent, up to 100.
fn scale(gathered: &ReportData, dots: &[Dot], is_crowded: bool) -> (f64, f64) {
    let values = if is_crowded {
        let squares = gathered.crowd.iter();
        let least = squares.map(|((all, usable), count)| (f64::from(*all.min(usable)), *count));
        least.collect()
    } else {
        let spots = dots.iter().map(|dot| &dot.spot);
        let least = spots.map(|spot| (spot.germination.min(spot.usable), 1));
        least.collect()
    };
    let least = usual_least(values).unwrap_or(100.0).clamp(0.0, 99.0);
    (rounded_out(least, 100.0, 5).0.floor(), 100.0)
}

/// Counts the batches that lie beyond the scale, and those of them that have an impossible rate.
fn beyond(
    gathered: &ReportData,
    spots: &[ScatterPoint],
    is_crowded: bool,
    scale: (f64, f64),
) -> (u64, u64) {
    let possible: u64 = gathered.crowd.values().sum();
    let beyond = if is_crowded {
        let squares = gathered.crowd.iter();
        let within = squares.filter(|((all, usable), _)| f64::from(*all.min(usable)) >= scale.0);
        gathered.rated - within.map(|(_, count)| count).sum::<u64>()
    } else {
        spots.iter().filter(|spot| spot.is_beyond(scale)).count() as u64
    };
    (beyond, gathered.rated - possible)
}

fn legend(
    gathered: &ReportData,
    newest: Option<Period>,
    spots: &[ScatterPoint],
    is_crowded: bool,
    (beyond, impossible): (u64, u64),
) -> Vec<(&'static str, String)> {
    let mut legend = Vec::new();
    if let Some(newest) = newest.filter(|_| spots.iter().any(|spot| spot.is_new)) {
        let words = format!("newest {}, {}", gathered.step_words().one, newest.label());
        legend.push(("now", words));
    }
    if spots.iter().any(|spot| !spot.is_new) {
        legend.push(("spot", "others".to_owned()));
    }
    if is_crowded {
        legend.push((
            "crowd",
            "all batches: the stronger a shade, the more, four times as many with each".to_owned(),
        ));
    }
    if beyond > 0 {
        let batches = plural(beyond, "batch", "batches");
        let impossible = match impossible {
            0 => String::new(),
            count => format!(", {count} with a rate below 0 or above 100 %"),
        };
        legend.push((
            "edge",
            format!("diamond at the edge: beyond the scale ({batches}{impossible})"),
        ));
    }
    legend
}

fn aside(gathered: &ReportData, spots: &[ScatterPoint], is_crowded: bool) -> String {
    let linked = spots.iter().filter(|spot| spot.link.is_some()).count();
    let leads = match linked {
        0 => "",
        _ if linked < spots.len() => "; dots lead to their analysis where there is one",
        _ => "; each dot leads to its analysis",
    };
    let batches = plural(gathered.rated, "batch", "batches");
    if is_crowded {
        format!("newest {} of {batches} as dots{leads}", spots.len())
    } else {
        format!("{batches}{leads}")
    }
}
