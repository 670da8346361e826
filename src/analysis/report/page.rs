//! Fills the template with the sections of the page.

use askama::Template;

use super::attention::Attention;
use super::cells;
use super::chart::Chart;
use super::control;
use super::crops::{NewestTable, RangeRow, range_rows};
use super::dots;
use super::format::{ago, day, minute, period_name};
use super::gather::ReportData;
use super::quality::{QualityIssue, similar_crops};
use super::tiles::{Tile, tiles};
use super::trends::{Trends, by_attention};
use super::verdict::VerdictText;
use crate::analysis::Targets;
use crate::analysis::judgement::NewestStep;
use crate::analysis::statistics::{Metric, Period, Step, two_digits};
use crate::batch::range::Range;
use crate::error::{Failure, Kind};
use crate::text::{self, thousands};

/// The information about the report itself.
pub(crate) struct ReportInfo {
    pub(crate) title: String,
    /// The profile of the config file, if it has a name.
    pub(crate) profile: Option<String>,
    /// The source of the batches.
    pub(crate) source: String,
    pub(crate) range: Range,
    /// The conditions of `--where`.
    pub(crate) conditions: Vec<String>,
    /// The version of the interface, if the source is a service.
    pub(crate) version: Option<String>,
    /// Whether the page shows email addresses.
    pub(crate) has_emails: bool,
    /// Issues found while fetching: the number of batches, and the text.
    pub(crate) noticed: Vec<(u64, String)>,
    /// Whether some received data is not in the figures.
    pub(crate) has_left_out: bool,
}

/// Returns the HTML page.
pub(crate) fn render(
    data: &mut ReportData,
    info: &ReportInfo,
    targets: &Targets,
) -> Result<String, Failure> {
    data.recent.finish();
    ReportPage::new(data, info, targets)
        .render()
        .map_err(|error| Failure::new(Kind::Internal, "cannot create the report").caused_by(error))
}

#[derive(Template)]
#[template(path = "page.html", config = "src/analysis/report/askama.toml")]
struct ReportPage {
    title: String,
    /// The newest step, for the title of the window.
    step_name: String,
    /// The step as ISO 8601 writes it.
    step_label: String,
    /// When the newest batch was created.
    freshness: String,
    /// The conditions of `--where`.
    filter: String,
    batches: u64,
    verdict: Option<VerdictText>,
    newest: NewestTable,
    step: &'static str,
    steps: &'static str,
    attention: Attention,
    attention_lead: String,
    tiles: Vec<Tile>,
    trends: Trends,
    /// The control chart, if there is only one crop.
    control: Option<Chart>,
    charts: Vec<Chart>,
    range_rows: Vec<RangeRow>,
    /// The number of crops without a row.
    left_out_crops: usize,
    has_emails: bool,
    facts: Vec<(&'static str, String)>,
    findings: Vec<QualityIssue>,
    findings_note: &'static str,
    /// The means weighted by images.
    weighted_germination: String,
    weighted_usable: String,
    zone: String,
    colophon: String,
    set_digest: String,
}

impl ReportPage {
    fn new(data: &ReportData, info: &ReportInfo, targets: &Targets) -> Self {
        let words = data.step_words();
        let total = data.history.total();
        let newest = data.history.judge(targets);
        let newest = newest.as_ref();
        let period = newest.map(|newest| newest.period);
        let attention = newest.map(|newest| Attention::new(data, newest, targets));
        let attention = attention.unwrap_or_default();
        let trends = newest.map(|newest| Trends::new(data, newest));
        let trends = trends.unwrap_or_default();
        let has_left_out = info.has_left_out
            || data.quality.has_beyond
            || data.losses.iter().any(|losses| losses.left_out > 0);
        let crops = crop_order(data, newest);
        let mut charts = Vec::new();
        charts.extend(cells::losses_chart(data, &crops));
        charts.extend(dots::chart(data, period));
        charts.extend(cells::variation_chart(data, &crops));
        let range_rows = range_rows(data);
        Self {
            title: info.title.clone(),
            step_name: period.map_or_else(String::new, |period| period_name(period).0),
            step_label: period.map_or_else(String::new, Period::label),
            freshness: freshness(data),
            filter: info.conditions.join(", "),
            batches: total.batches,
            verdict: newest.map(|newest| VerdictText::new(data, newest, &attention)),
            newest: newest.map_or_else(NewestTable::default, |newest| {
                NewestTable::new(data, newest)
            }),
            step: words.0,
            steps: words.1,
            attention_lead: attention_lead(&attention, words.0),
            attention,
            tiles: newest.map_or_else(Vec::new, |newest| tiles(data, newest)),
            control: control::chart(data, period).filter(|_| !trends.charts.is_empty()),
            trends,
            charts,
            left_out_crops: data.history.crops.len() - range_rows.len(),
            range_rows,
            has_emails: info.has_emails,
            facts: facts(data, info, total.batches),
            findings: findings(data, info),
            findings_note: if has_left_out {
                "For your information: nothing was corrected. Values left out of the figures are listed here."
            } else {
                "For your information: nothing was corrected, nothing left out."
            },
            weighted_germination: percent(&total.germination_rate),
            weighted_usable: percent(&total.usable_rate),
            zone: zone(data),
            colophon: colophon(data, info),
            set_digest: data.digest.finish(),
        }
    }
}

/// Returns the names of the crops in the order of the charts.
fn crop_order<'a>(data: &'a ReportData, newest: Option<&'a NewestStep<'a>>) -> Vec<&'a str> {
    newest.map_or_else(
        || data.history.crops.keys().map(String::as_str).collect(),
        |newest| by_attention(newest).iter().map(|crop| crop.name).collect(),
    )
}

/// Describes the range of dates in words.
fn range_words(data: &ReportData, info: &ReportInfo) -> String {
    const DAY: i64 = 86_400;
    let Range {
        start,
        end,
        excludes_end,
    } = info.range;
    let end = end.map(|end| data.span.zone.local(end));
    // A range of whole days is named by its days, and any other one by its times.
    let is_days = end.is_none_or(|end| excludes_end && end % DAY == 0);
    let moment = |local: i64| {
        if is_days && local % DAY == 0 {
            day(local)
        } else {
            minute(local)
        }
    };
    let start = start.map(|start| moment(data.span.zone.local(start)));
    let end = end.map(|end| moment(end - i64::from(is_days) * DAY));
    match (start, end) {
        (None, None) => "all dates".to_owned(),
        (Some(start), None) => format!("since {start}"),
        (None, Some(end)) => format!("until {end}"),
        (Some(start), Some(end)) if start == end => start,
        (Some(start), Some(end)) => format!("{start} to {end}"),
    }
}

fn attention_lead(attention: &Attention, step: &str) -> String {
    let checked = attention.looked_at.as_ref();
    let checked = checked.map_or_else(String::new, |batches| {
        format!(" Only the newest {batches} batches of the {step} were looked at.")
    });
    match attention.count {
        0 if attention.has_any => {
            format!("Some batches of the newest {step} need attention.{checked}")
        }
        0 if !attention.crops.is_empty() => {
            format!("No batch of the newest {step} stands out, but a whole crop is down.")
        }
        0 => format!("No batch of the newest {step} needs attention."),
        count => format!(
            "{}{} of the newest {step}.{checked}",
            if checked.is_empty() { "" } else { "At least " },
            text::count(count, "batch", "batches")
        ),
    }
}

fn percent(metric: &Metric) -> String {
    let mean = metric.weighted_mean();
    mean.map_or_else(|| "–".to_owned(), |mean| format!("{} %", two_digits(mean)))
}

/// Says when the newest batch was created.
fn freshness(data: &ReportData) -> String {
    let scans = &data.recent.scans;
    let made = data.span.made();
    // A date in the future does not show how fresh the data is, so prefer the newest past batch.
    let past = scans.iter().find(|scan| scan.created <= made);
    let until = match (past, scans.first()) {
        (Some(past), Some(first)) if first.created > past.created => " up to now",
        _ => "",
    };
    past.or(scans.first()).map_or_else(String::new, |newest| {
        let age = ago(newest.created, made);
        format!("Newest batch{until}: {}, {age}", minute(newest.created))
    })
}

/// Returns how times are meant.
fn zone(data: &ReportData) -> String {
    let zone = data.span.zone.name();
    match data.history.step {
        Step::Day => format!("Days are those of {zone}."),
        Step::Week => {
            format!("Days and weeks are those of {zone}; weeks are ISO weeks, Monday to Sunday.")
        }
        Step::Month => format!("Days and months are those of {zone}."),
    }
}

fn facts(data: &ReportData, info: &ReportInfo, batches: u64) -> Vec<(&'static str, String)> {
    let generated = format!("{} {}", minute(data.span.made()), data.span.zone.name());
    let mut rows = vec![
        ("Profile", info.profile.clone().unwrap_or_default()),
        ("Range", range_words(data, info)),
        ("Filter", info.conditions.join(", ")),
        ("Batches", thousands(batches)),
        ("Crops", data.named_crops().to_string()),
        ("Batches without measurements", thousands(data.unmeasured)),
        ("Generated", generated),
    ];
    rows.retain(|(_, text)| !text.is_empty());
    rows
}

/// Returns the issues in the data, then those found while fetching.
fn findings(data: &ReportData, info: &ReportInfo) -> Vec<QualityIssue> {
    let from_fetch = info.noticed.iter().map(|(count, words)| QualityIssue {
        count: *count,
        words: words.clone(),
        examples: Vec::new(),
    });
    let names = data.history.crops.keys().map(String::as_str);
    let found = data.quality.findings().into_iter();
    found
        .chain(similar_crops(names))
        .chain(from_fetch)
        .collect()
}

fn colophon(data: &ReportData, info: &ReportInfo) -> String {
    let interface = info.version.as_ref();
    let interface = interface.map(|version| format!(" (interface {version})"));
    format!(
        "trayscan {}, from {}{}, {}, generated {} {}.",
        env!("CARGO_PKG_VERSION"),
        info.source,
        interface.unwrap_or_default(),
        range_words(data, info),
        minute(data.span.made()),
        data.span.zone.name()
    )
}
