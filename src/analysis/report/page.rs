//! What stands on the page, section by section, in words and pictures.

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

/// What a page tells of itself.
pub(crate) struct ReportInfo {
    pub(crate) title: String,
    /// The profile of the settings, where it has a name.
    pub(crate) profile: Option<String>,
    /// Where the batches came from.
    pub(crate) source: String,
    /// Of dates, in words.
    pub(crate) range: String,
    /// What batches had to fulfil.
    pub(crate) conditions: Vec<String>,
    /// The version of the interface, where a service was asked.
    pub(crate) version: Option<String>,
    /// When it was made, in seconds since 1970.
    pub(crate) made: i64,
    /// Whether the page names who scanned.
    pub(crate) has_emails: bool,
    /// What was noticed on the way here: how many batches, and what of them.
    pub(crate) noticed: Vec<(u64, String)>,
    /// Whether something that came is in no figure.
    pub(crate) has_left_out: bool,
}

/// Returns the page.
pub(crate) fn render(
    gathered: &ReportData,
    facts: &ReportInfo,
    targets: &Targets,
) -> Result<String, Failure> {
    ReportPage::new(gathered, facts, targets)
        .render()
        .map_err(|error| Failure::new(Kind::Internal, "cannot make the page").caused_by(error))
}

#[derive(Template)]
#[template(path = "page.html", config = "src/analysis/report/askama.toml")]
struct ReportPage {
    title: String,
    facts: Vec<(&'static str, String)>,
    /// The step that the page is about; nothing where no batch came.
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
    /// Batch by batch, where there is one crop.
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
    /// What of it is there, where that is not all.
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

/// Means weighted by images.
struct Weighted {
    germination: String,
    usable: String,
}

impl ReportPage {
    fn new(gathered: &ReportData, facts: &ReportInfo, targets: &Targets) -> Self {
        let steps = gathered.step_words();
        let newest = gathered.last_step();
        let total = gathered.total();
        let attention = Attention::new(gathered, targets);
        let trends = Trends::new(gathered, targets, newest);
        let table = crops::table(gathered, targets, newest);
        let mut losses = gathered.crops.values().map(|crop| &crop.losses);
        let has_left_out = facts.has_left_out
            || gathered.quality.has_left_out()
            || losses.any(|losses| losses.left_out > 0);
        let mut charts = Vec::new();
        charts.extend(crops::losses_chart(gathered));
        charts.extend(dots::chart(gathered, newest));
        charts.extend(crops::variation_chart(gathered));
        let control = control::chart(gathered).filter(|_| !trends.charts.is_empty());
        Self {
            title: facts.title.clone(),
            facts: header(gathered, facts, total.batches),
            newest: newest.map(|newest| {
                let (name, dates) = period_name(newest);
                let share = gathered.span.share(newest);
                let is_running = gathered.span.is_running(newest);
                NewestStep {
                    name,
                    dates,
                    part: share.map(|share| {
                        let running = if is_running { "still running, " } else { "" };
                        format!("{running}{share}")
                    }),
                }
            }),
            newest_title: format!("The newest {}, medians of its batches", steps.one),
            step_words: steps.many,
            is_weekly: gathered.step == Step::Week,
            tiles: newest.map_or_else(Vec::new, |newest| tiles(gathered, newest)),
            has_targets: table.rows.iter().any(|row| row.target.is_some()),
            crops: table.rows,
            crops_note: table.note,
            total: table.total,
            spark_steps: table.spark_steps,
            trends,
            control,
            charts,
            attention_note: attention.note(gathered, targets),
            attention: attention.rows.iter().map(attention_row).collect(),
            has_emails: facts.has_emails,
            findings: findings(gathered, facts),
            findings_note: if has_left_out {
                "For your information: nothing was corrected. What figures do without is told here."
            } else {
                "For your information: nothing was corrected, and nothing left out."
            },
            weighted: Weighted {
                germination: percent(&total.germination_rate),
                usable: percent(&total.usable_rate),
            },
            colophon: colophon(facts),
            set_digest: gathered.set_digest(),
        }
    }
}

fn percent(metric: &Metric) -> String {
    metric
        .weighted_mean()
        .map_or_else(|| "–".to_owned(), |mean| format!("{} %", two_digits(mean)))
}

fn header(gathered: &ReportData, facts: &ReportInfo, batches: u64) -> Vec<(&'static str, String)> {
    let mut rows = Vec::new();
    if let Some(profile) = &facts.profile {
        rows.push(("Profile", profile.clone()));
    }
    rows.push(("Range", facts.range.clone()));
    if !facts.conditions.is_empty() {
        rows.push(("Only", facts.conditions.join(", ")));
    }
    let crops = gathered.crops.keys().flatten().count() as u64;
    rows.push(("Batches", batches.to_string()));
    rows.push(("Crops", crops.to_string()));
    rows.push(("Without figures", gathered.without_figures.to_string()));
    let scans = gathered.newest.sorted();
    // What is from the future says nothing of how fresh the data is, where there is anything else.
    let past = scans.iter().find(|scan| scan.created <= facts.made);
    if let Some(newest) = past.or(scans.first()) {
        let age = ago(facts.made - newest.created);
        rows.push((
            "Newest batch",
            format!("{} UTC, {age}", minute(newest.created)),
        ));
    }
    rows.push(("Made", format!("{} UTC", minute(facts.made))));
    rows
}

/// What the data says of itself, and what was seen on the way here.
fn findings(gathered: &ReportData, facts: &ReportInfo) -> Vec<QualityIssue> {
    let on_the_way = facts.noticed.iter().map(|(count, words)| QualityIssue {
        count: *count,
        words: words.clone(),
        examples: Vec::new(),
    });
    gathered
        .quality
        .findings()
        .into_iter()
        .chain(on_the_way)
        .collect()
}

fn colophon(facts: &ReportInfo) -> String {
    let version = env!("CARGO_PKG_VERSION");
    let interface = facts
        .version
        .as_ref()
        .map_or_else(String::new, |version| format!(" (interface {version})"));
    format!(
        "trayscan {version}, from {}{interface}, {}, made {} UTC.",
        facts.source,
        facts.range,
        minute(facts.made)
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
