//! The scatter chart of germination and usable rate: a dot per batch, and a table of the largest gaps. Dots far below the
//! diagonal germinated but are not usable.

use super::chart::{Chart, EdgeNumbers, WIDTH, crop_name, usual_least};
use super::format::{figure, to_f64};
use super::gather::{Density, ReportData};
use super::svg::{AltText, Anchor, Axis, Escaped, Svg, rounded_out, tick_label};
use crate::analysis::statistics::{Decimal, Period, two_digits};
use crate::text;

/// The maximum number of dots in the chart, to limit the size of the page.
const MAX_DOTS: usize = 400;
/// The maximum size of their links and tooltips, in bytes. Links can be long.
const MAX_DOTS_SIZE: usize = 256 * 1024;
/// The maximum number of rows in the table, and the maximum size of their links in bytes.
const MAX_ROWS: usize = 50;
const MAX_ROWS_SIZE: usize = 64 * 1024;

const HEIGHT: f64 = 340.0;
const LEFT: f64 = 42.0;
const RIGHT: f64 = WIDTH - 14.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = HEIGHT - 40.0;

/// A dot and its row in the table.
struct Dot {
    germination: f64,
    usable: f64,
    gap: Decimal,
    tooltip: String,
    /// The link to the analysis.
    link: Option<String>,
    /// Whether it belongs to the newest step.
    is_new: bool,
    cells: Vec<String>,
}

impl Dot {
    /// Returns whether it is beyond the scale and drawn at the edge.
    fn is_beyond(&self, (from, to): (f64, f64)) -> bool {
        let rates = [self.germination, self.usable];
        rates.iter().any(|rate| *rate < from || *rate > to)
    }

    /// Returns the size of its texts on the page, in bytes.
    fn size(&self) -> usize {
        let texts = [Some(&self.tooltip), self.link.as_ref()];
        let texts = texts.into_iter().flatten();
        texts.map(|text| Escaped(text).to_string().len()).sum()
    }
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
    let beyond = beyond(data.rated, &density, &dots, is_crowded, scale);
    let below = dots
        .iter()
        .filter(|dot| dot.germination - dot.usable > 10.0);
    let words = AltText {
        id: "scatter",
        title: "Germination rate against usable rate, one dot per batch",
        description: &format!(
            "Both in percent. On the diagonal, every germinated seedling is usable. Of {}, {} are more than 10 points below it.",
            text::count(dots.len() as u64, "dot", "dots"),
            below.count(),
        ),
    };
    let crowd = if is_crowded { density } else { Density::new() };
    Some(Chart {
        caption: "Germination against usable".to_owned(),
        aside: aside(data, &dots, is_crowded),
        legend: legend(data, &dots, is_crowded, beyond),
        svg: draw(&dots, &crowd, scale, &words),
        rows_caption,
        head: vec!["batch", "crop", "germination %", "usable %", "gap, points"],
        rows,
        links,
    })
}

fn dots(data: &ReportData, newest: Option<Period>) -> Vec<Dot> {
    let scans = data.recent.scans.iter();
    let dots = scans.filter_map(|scan| {
        let (germination, usable) = scan.germination_rate.zip(scan.usable_rate)?;
        let (name, crop) = (scan.name(), crop_name(scan.crop()));
        let (all, some) = (two_digits(germination), two_digits(usable));
        let gap = germination - usable;
        Some(Dot {
            germination: to_f64(germination),
            usable: to_f64(usable),
            tooltip: format!("{name}, {crop}: germination {all} %, usable {some} %"),
            link: scan.link(),
            is_new: Some(data.history.step.period(scan.created)) == newest,
            cells: vec![name, crop, all, some, figure(Some(gap))],
            gap,
        })
    });
    dots.take(MAX_DOTS)
        .scan(0, |size, dot| {
            *size += dot.size();
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
            size += dot.size();
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
    let links = listed.iter().map(|dot| dot.link.clone()).collect();
    (caption, rows, links)
}

/// Returns the scale for both rates, in whole percent, up to 100.
fn scale(density: &Density, dots: &[Dot], is_crowded: bool) -> (f64, f64) {
    let squares = density.iter();
    let squares = squares.map(|((all, usable), count)| (f64::from(*all.min(usable)), *count));
    let values = if is_crowded {
        squares.collect()
    } else {
        let dots = dots.iter();
        dots.map(|dot| (dot.germination.min(dot.usable), 1))
            .collect()
    };
    let least = usual_least(values).unwrap_or(100.0).clamp(0.0, 99.0);
    (rounded_out(least, 100.0, 5).0.floor(), 100.0)
}

/// Counts the batches beyond the scale, and those of them with an impossible rate.
fn beyond(
    rated: u64,
    density: &Density,
    dots: &[Dot],
    is_crowded: bool,
    scale: (f64, f64),
) -> (u64, u64) {
    let possible: u64 = density.values().sum();
    let beyond = if is_crowded {
        let squares = density.iter();
        let within = squares.filter(|((all, usable), _)| f64::from(*all.min(usable)) >= scale.0);
        rated - within.map(|(_, count)| count).sum::<u64>()
    } else {
        dots.iter().filter(|dot| dot.is_beyond(scale)).count() as u64
    };
    (beyond, rated - possible)
}

fn legend(
    data: &ReportData,
    dots: &[Dot],
    is_crowded: bool,
    (beyond, impossible): (u64, u64),
) -> Vec<(&'static str, String)> {
    let mut legend = Vec::new();
    if dots.iter().any(|dot| dot.is_new) {
        legend.push(("now", format!("newest {}", data.step_words().0)));
    }
    if dots.iter().any(|dot| !dot.is_new) {
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

fn aside(data: &ReportData, dots: &[Dot], is_crowded: bool) -> String {
    let linked = dots.iter().filter(|dot| dot.link.is_some()).count();
    let note = match linked {
        0 => "",
        _ if linked < dots.len() => "; dots link to their analysis if there is one",
        _ => "; each dot links to its analysis",
    };
    let batches = text::count(data.rated, "batch", "batches");
    if is_crowded {
        format!("newest {} of {batches} as dots{note}", dots.len())
    } else {
        format!("{batches}{note}")
    }
}

/// Draws the dots above the squares of the `crowd`, on a scale for both axes.
fn draw(dots: &[Dot], crowd: &Density, scale: (f64, f64), alt: &AltText<'_>) -> String {
    let mut svg = Svg::with_role("group", WIDTH, HEIGHT, alt);
    let x = Axis::new(scale, (LEFT, RIGHT));
    let y = Axis::new(scale, (BOTTOM, TOP));
    for tick in x.ticks(5) {
        svg.line("grid", (x.position(tick), TOP), (x.position(tick), BOTTOM));
        svg.line("grid", (LEFT, y.position(tick)), (RIGHT, y.position(tick)));
        let (below, left) = (
            (x.position(tick), BOTTOM + 15.0),
            (LEFT - 5.0, y.position(tick) + 4.0),
        );
        svg.label("tick", below, Anchor::Middle, &tick_label(tick));
        svg.label("tick", left, Anchor::End, &tick_label(tick));
    }
    draw_crowd(&mut svg, crowd, scale.0, &x, &y);
    svg.line("diagonal", (LEFT, BOTTOM), (RIGHT, TOP));
    let (new, old): (Vec<&Dot>, Vec<&Dot>) = dots.iter().partition(|dot| dot.is_new);
    let mut beyond: Vec<(&Dot, f64)> = Vec::new();
    for dot in old.into_iter().chain(new) {
        if dot.is_beyond(scale) {
            let is_usable = dot.usable < scale.0 || dot.usable > scale.1;
            let values = [dot.germination, dot.usable];
            beyond.push((dot, values[usize::from(is_usable)]));
        } else {
            let position = (x.position(dot.germination), y.position(dot.usable));
            draw_dot(&mut svg, dot, position, false);
        }
    }
    // The lowest has the place at the edge, and the others stand in a row away from it, each with its number.
    beyond.sort_by(|(_, left), (_, right)| left.total_cmp(right));
    let mut numbers = EdgeNumbers::new(LEFT, RIGHT);
    for (dot, value) in beyond {
        let (x, y) = (x.position(dot.germination), y.position(dot.usable));
        let place = numbers.write(&mut svg, (x, y), value, dot.usable > scale.1);
        draw_dot(&mut svg, dot, (x, place.unwrap_or(y)), true);
    }
    let below = (f64::midpoint(LEFT, RIGHT), HEIGHT - 6.0);
    svg.label("axis", below, Anchor::Middle, "germination rate, %");
    let beside = (-(TOP + BOTTOM) / 2.0, 12.0);
    svg.label("axis upright", beside, Anchor::Middle, "usable rate, %");
    svg.finish()
}

fn draw_dot(svg: &mut Svg, dot: &Dot, position: (f64, f64), is_beyond: bool) {
    let (class, radius) = if dot.is_new {
        ("now", 4.5)
    } else {
        ("spot", 3.2)
    };
    let shape = |svg: &mut Svg| {
        if is_beyond {
            // At the edge: this is not its real position.
            svg.diamond(&format!("edge {class}"), position, &dot.tooltip);
        } else {
            svg.dot(class, position, radius, Some(&dot.tooltip));
        }
    };
    match &dot.link {
        Some(link) => svg.link(link, shape),
        None => shape(svg),
    }
}

/// Shades each square by its number of batches. There are five shades, each for four times as many.
fn draw_crowd(svg: &mut Svg, crowd: &Density, least: f64, x: &Axis, y: &Axis) {
    let mut shades: [Vec<(f64, f64)>; 5] = Default::default();
    for ((germination, usable), count) in crowd {
        if f64::from(*germination.min(usable)) < least {
            continue;
        }
        let corner = (
            x.position((*germination).into()),
            y.position(f64::from(*usable) + 1.0),
        );
        shades[count.ilog(4).min(4) as usize].push(corner);
    }
    let across = x.position(100.0) - x.position(99.0);
    let up = y.position(99.0) - y.position(100.0);
    for (shade, corners) in (1..).zip(&shades) {
        if !corners.is_empty() {
            let class = format!("crowd crowd{shade}");
            svg.boxes(&class, corners, (across, up));
        }
    }
}
