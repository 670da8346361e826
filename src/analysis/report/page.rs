//! Fills the template with the sections of the page.

use askama::Template;

use super::attention::{Attention, FlaggedBatch};
use super::chart::{Chart, crop_name};
use super::control;
use super::crops::{self, CropRow};
use super::dots;
use super::format::{ago, figure, minute, period_name};
use super::gather::ReportData;
use super::quality::QualityIssue;
use super::tiles::{Tile, tiles};
use super::trends::Trends;
use crate::analysis::Targets;
use crate::analysis::statistics::{Metric, Step, two_digits};
use crate::error::{Failure, Kind};

/// The information about the report itself.
pub(crate) struct ReportInfo {
    pub(crate) title: String,
    /// The profile of the config file, if it has a name.
    pub(crate) profile: Option<String>,
    /// The source of the batches.
    pub(crate) source: String,
    /// The range of dates, as text.
    pub(crate) range: String,
    /// The conditions of `--where`.
    pub(crate) conditions: Vec<String>,
    /// The version of the interface, if the source is a service.
    pub(crate) version: Option<String>,
    /// When the report was generated, in seconds since 1970.
    pub(crate) made: i64,
    /// Whether the page shows email addresses.
    pub(crate) has_emails: bool,
    /// Issues found while fetching: the number of batches, and the text.
    pub(crate) noticed: Vec<(u64, String)>,
    /// Whether some received data is not in the figures.
    pub(crate) has_left_out: bool,
}

/// Returns the HTML page.
pub(crate) fn render(
    data: &ReportData,
    info: &ReportInfo,
    targets: &Targets,
) -> Result<String, Failure> {
    ReportPage::new(data, info, targets)
        .render()
        .map_err(|error| Failure::new(Kind::Internal, "cannot create the report").caused_by(error))
}

#[derive(Template)]
#[template(path = "page.html", config = "src/analysis/report/askama.toml")]
struct ReportPage {
    title: String,
    facts: Vec<(&'static str, String)>,
    /// The step that the page is about. `None` if there are no batches.
    newest: Option<NewestStep>,
    newest_title: String,
    step_words: &'static str,
    is_weekly: bool,
    tiles: Vec<Tile>,
    crops: Vec<CropRow>,
    crops_note: String,
    total: CropRow,
    has_targets: bool,
    spark_steps: usize,
    trends: Trends,
    /// The control chart, if there is only one crop.
    control: Option<Chart>,
    charts: Vec<Chart>,
    attention: Vec<AttentionRow>,
    attention_note: String,
    has_emails: bool,
    findings: Vec<QualityIssue>,
    findings_note: &'static str,
    weighted: Weighted,
    colophon: String,
    set_digest: String,
}

struct NewestStep {
    name: String,
    dates: String,
    /// The part of the step that is in the range, if not all of it.
    part: Option<String>,
}

struct AttentionRow {
    created: String,
    name: String,
    link: Option<String>,
    crop: String,
    usable: String,
    reasons: Vec<String>,
    comment: String,
    email: String,
}

/// The means weighted by images.
struct Weighted {
    germination: String,
    usable: String,
}

impl ReportPage {
    fn new(data: &ReportData, info: &ReportInfo, targets: &Targets) -> Self {
        let steps = data.step_words();
        let newest = data.last_step();
        let total = data.total();
        let attention = Attention::new(data, targets);
        let trends = Trends::new(data, targets, newest);
        let table = crops::table(data, targets, newest);
        let mut losses = data.crops.values().map(|crop| &crop.losses);
        let has_left_out = info.has_left_out
            || data.quality.has_left_out()
            || losses.any(|losses| losses.left_out > 0);
        let mut charts = Vec::new();
        charts.extend(crops::losses_chart(data));
        charts.extend(dots::chart(data, newest));
        charts.extend(crops::variation_chart(data));
        let control = control::chart(data).filter(|_| !trends.charts.is_empty());
        Self {
            title: info.title.clone(),
            facts: header(data, info, total.batches),
            newest: newest.map(|newest| {
                let (name, dates) = period_name(newest);
                let share = data.span.share(newest);
                let is_running = data.span.is_running(newest);
                NewestStep {
                    name,
                    dates,
                    part: share.map(|share| {
                        let running = if is_running { "still running, " } else { "" };
                        format!("{running}{share}")
                    }),
                }
            }),
            newest_title: format!("The newest {}: medians of its batches", steps.one),
            step_words: steps.many,
            is_weekly: data.step == Step::Week,
            tiles: newest.map_or_else(Vec::new, |newest| tiles(data, newest)),
            has_targets: table.rows.iter().any(|row| row.target.is_some()),
            crops: table.rows,
            crops_note: table.note,
            total: table.total,
            spark_steps: table.spark_steps,
            trends,
            control,
            charts,
            attention_note: attention.note(data, targets),
            attention: attention.rows.iter().map(attention_row).collect(),
            has_emails: info.has_emails,
            findings: findings(data, info),
            findings_note: if has_left_out {
                "For your information: nothing was corrected. Values left out of the figures are listed here."
            } else {
                "For your information: nothing was corrected, nothing left out."
            },
            weighted: Weighted {
                germination: percent(&total.germination_rate),
                usable: percent(&total.usable_rate),
            },
            colophon: colophon(info),
            set_digest: data.set_digest(),
        }
    }
}

fn percent(metric: &Metric) -> String {
    metric
        .weighted_mean()
        .map_or_else(|| "–".to_owned(), |mean| format!("{} %", two_digits(mean)))
}

fn header(data: &ReportData, info: &ReportInfo, batches: u64) -> Vec<(&'static str, String)> {
    let mut rows = Vec::new();
    if let Some(profile) = &info.profile {
        rows.push(("Profile", profile.clone()));
    }
    rows.push(("Range", info.range.clone()));
    if !info.conditions.is_empty() {
        rows.push(("Filter", info.conditions.join(", ")));
    }
    let crops = data.crops.keys().flatten().count() as u64;
    rows.push(("Batches", batches.to_string()));
    rows.push(("Crops", crops.to_string()));
    rows.push(("Without figures", data.without_figures.to_string()));
    let scans = data.newest.sorted();
    // A date in the future does not show how fresh the data is, so prefer the newest past batch.
    let past = scans.iter().find(|scan| scan.created <= info.made);
    if let Some(newest) = past.or(scans.first()) {
        let age = ago(info.made - newest.created);
        rows.push((
            "Newest batch",
            format!("{} UTC, {age}", minute(newest.created)),
        ));
    }
    rows.push(("Generated", format!("{} UTC", minute(info.made))));
    rows
}

/// Returns the issues in the data, then those found while fetching.
fn findings(data: &ReportData, info: &ReportInfo) -> Vec<QualityIssue> {
    let from_fetch = info.noticed.iter().map(|(count, words)| QualityIssue {
        count: *count,
        words: words.clone(),
        examples: Vec::new(),
    });
    data.quality
        .findings()
        .into_iter()
        .chain(from_fetch)
        .collect()
}

fn colophon(info: &ReportInfo) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let interface = info
        .version
        .as_ref()
        .map_or_else(String::new, |version| format!(" (interface {version})"));
    format!(
        "trayscan {version}, from {}{interface}, {}, generated {} UTC.",
        info.source,
        info.range,
        minute(info.made)
    )
}

fn attention_row(noticed: &FlaggedBatch<'_>) -> AttentionRow {
    let scan = noticed.scan;
    AttentionRow {
        created: minute(scan.created),
        name: scan.name(),
        link: scan.link.clone(),
        crop: crop_name(scan.crop.as_deref()),
        usable: figure(scan.usable_rate),
        reasons: noticed.reasons.clone(),
        comment: scan.comment(),
        email: scan.email(),
    }
}
