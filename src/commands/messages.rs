//! What every command that takes many batches has in common: which are wanted, and what is told at the end.

use chrono::{DateTime, Utc};

use super::source::{BatchPages, BatchSource};
use crate::analysis::statistics::Figures;
use crate::batch::COLUMNS;
use crate::batch::filter::Condition;
use crate::batch::range::Range;
use crate::cli::SelectionArgs;
use crate::error::{Failure, Kind};
use crate::fetch::DataIssues;
use crate::pipeline::{Counts, Selection};
use crate::terminal;
use crate::text;
use crate::verify;

/// Which batches the command line asks for, checked before anything is sent.
pub(super) struct SelectionRequest {
    pub(super) range: Range,
    pub(super) conditions: Vec<Condition>,
    /// When it was asked for: what "today" and "7d" are counted from.
    pub(super) asked: DateTime<Utc>,
}

impl SelectionRequest {
    pub(super) fn new(args: &SelectionArgs) -> Result<Self, Failure> {
        let asked = Utc::now();
        let conditions = args.conditions.iter();
        Ok(Self {
            range: Range::parse(
                args.range.start.as_deref(),
                args.range.end.as_deref(),
                asked,
            )?,
            conditions: conditions
                .map(|text| Condition::parse(text, asked))
                .collect::<Result<_, _>>()?,
            asked,
        })
    }

    pub(super) fn plan(&self) -> Selection {
        Selection {
            conditions: self.conditions.clone(),
            ..Selection::new(&self.range)
        }
    }
}

/// Says that nothing matched, for `--fail-on-empty`.
pub(super) fn nothing_matched(range: &Range, args: &SelectionArgs, tally: &Counts) -> Failure {
    let (message, came) = if args.conditions.is_empty() {
        ("nothing matched", String::new())
    } else {
        (
            "no batch matched the conditions of `--where`",
            format!(", and {} came", count(tally.unwanted, "batch", "batches")),
        )
    };
    Failure::new(Kind::Empty, message).hint(format!(
        "asked for {}{came}; `--fail-on-empty` makes this an error",
        range.describe()
    ))
}

/// Says which way the batches came.
pub(super) fn how(source: &BatchSource, pages: &BatchPages<'_>) -> String {
    let BatchPages::Service(pages) = pages else {
        return format!("from {}", source.name());
    };
    let version = pages.version();
    let version = version.map_or_else(String::new, |version| format!("{version}, "));
    let requests = count(source.stats.requests.get(), "request", "requests");
    format!("{version}{requests}")
}

/// Says how far `what` came, where it came anywhere, and what it left.
pub(super) fn stopped(
    failure: Failure,
    source: &BatchSource,
    what: &str,
    left: &str,
) -> anyhow::Error {
    let pages = source.stats.pages.get();
    if failure.kind == Kind::ClosedPipe || pages == 0 {
        return failure.into();
    }
    anyhow::Error::new(failure).context(format!(
        "the {what} stopped after {} ({}); {left}",
        count(pages, "page", "pages"),
        count(source.stats.batches.get(), "batch", "batches"),
    ))
}

/// Says what is wrong with batches that came, though all of them came.
pub(super) fn doubts(findings: &DataIssues, tally: &Counts, lenient: bool) -> Vec<String> {
    let conflicts = (tally.conflicts > 0).then(|| {
        let batches = count(tally.conflicts, "batch", "batches");
        format!("{batches} came again with other content; the first stays")
    });
    conflicts
        .into_iter()
        .chain(oddities(findings, lenient))
        .collect()
}

/// Says what is wrong with batches that were taken nevertheless.
pub(super) fn oddities(findings: &DataIssues, lenient: bool) -> Vec<String> {
    let absent = verify::listed(findings.absent);
    let absent: Vec<&str> = absent.iter().map(|&column| COLUMNS[column].name).collect();
    let absent = (!absent.is_empty()).then(|| {
        let (are, they_count) = match absent.len() {
            1 => ("is", "it counts"),
            _ => ("are", "they count"),
        };
        let fields = quoted(&absent);
        format!("{fields} {are} missing in some batches; {they_count} as null")
    });
    let flawed = (lenient && findings.flawed > 0).then(|| {
        format!(
            "{} the interface ({} left out, for want of a batch_id); the first: {}",
            count(findings.flawed, "batch breaks", "batches break"),
            findings.skipped,
            findings.example.as_deref().unwrap_or_default(),
        )
    });
    let held_back = findings
        .crowded
        .as_ref()
        .map(|first| match findings.held_back {
            0 | 1 => first.clone(),
            many => format!("{first}; so it is with {} more", many - 1),
        });
    absent.into_iter().chain(flawed).chain(held_back).collect()
}

/// Says what could not be made part of the figures.
pub(super) fn beyond(total: &Figures) -> Vec<String> {
    let values = total
        .metrics()
        .into_iter()
        .filter(|(_, metric)| metric.beyond > 0);
    let values = values.map(|(column, metric)| {
        format!(
            "{} of `{}` with more digits than can be counted exactly, 15 before the point and 10 behind it: left out, as if missing",
            count(metric.beyond, "value", "values"),
            COLUMNS[column].name
        )
    });
    let images = (total.odd_images > 0).then(|| {
        format!(
            "{} with a number of images that is none, or past four billion: counted as without images",
            count(total.odd_images, "batch", "batches")
        )
    });
    values.chain(images).collect()
}

/// Tells what is worth knowing of the batches that came, and of those that did not.
pub(super) fn tell(tally: &Counts, source: &BatchSource, is_sandbox: bool) -> Result<(), Failure> {
    if tally.duplicates > 0 {
        let batches = count(tally.duplicates, "batch", "batches");
        log::info!("{batches} came more than once and count once");
    }
    if tally.written == 0 && tally.unwanted > 0 {
        let batches = count(tally.unwanted, "batch", "batches");
        terminal::note(&format!("{batches} came, and none matched `--where`"));
    } else if tally.written == 0 && is_sandbox {
        terminal::note("the sandbox has batches from November 2023 to October 2026");
    }
    if let vanished @ 1.. = source.vanished()? {
        let batches = count(
            vanished,
            "batch that vanished from the service is",
            "batches that vanished from the service are",
        );
        let them = if vanished == 1 { "it" } else { "them" };
        terminal::note(&format!("{batches} left out; the archive still has {them}"));
    }
    Ok(())
}

/// Lists names, each in quotes.
pub(super) fn quoted(names: &[impl AsRef<str>]) -> String {
    let names = names.iter();
    let names: Vec<String> = names
        .map(|name| format!("`{}`", text::brief(name.as_ref())))
        .collect();
    names.join(", ")
}

pub(super) fn count(number: u64, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}
