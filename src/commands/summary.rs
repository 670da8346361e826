//! `summary`: computes statistics per group and writes them to the terminal or a file.

use std::path::Path;

use super::batches::BatchRequest;
use super::context::Context;
use super::messages::{count, figure_warnings};
use super::runtime;
use super::source::BatchSource;
use crate::analysis::KnownSpan;
use crate::analysis::judgement::{CropJudgement, NewestStep};
use crate::analysis::statistics::{distinct, two_digits};
use crate::analysis::summary::{self, SummaryData};
use crate::cli::{FailOn, OutputArgs, SummaryArgs, SummaryFormat};
use crate::error::{Failure, Kind};
use crate::export::Destination;
use crate::formats::{Format, detect};
use crate::secret::brief;
use crate::storage::Escapes;
use crate::terminal;
use crate::text;

pub(super) fn run(context: &Context, args: &SummaryArgs) -> anyhow::Result<()> {
    let zone = context.settings()?.time_zone.value.clone();
    let request = BatchRequest::new(&args.selection, &args.source, zone)?;
    check_by(args)?;
    let (destination, format) = destination(args)?;
    context.protect_own_files(&[("-o", args.output.as_deref())])?;
    let place = destination.place.clone();
    let args = args.clone();
    runtime::run(
        context,
        async move |context| summarise(&context, &args, &request, &destination, format).await,
        || place.left_behind(&context.storage),
    )
}

fn check_by(args: &SummaryArgs) -> Result<(), Failure> {
    let by = &args.by;
    let repeated = (1..by.len()).find(|&index| by[..index].contains(&by[index]));
    repeated.map_or(Ok(()), |index| {
        let message = format!("`--by` names `{}` twice", by[index].name());
        Err(Failure::usage(message, "name each field once"))
    })
}

/// Decides where to write the summary, and in which format.
fn destination(args: &SummaryArgs) -> Result<(Destination, SummaryFormat), Failure> {
    let path = args.output.as_deref();
    let path = path.filter(|path| *path != Path::new("-"));
    let format_of_name = path.and_then(format_of_name);
    let format = match (args.format, path) {
        (None, None) => Some(SummaryFormat::Table),
        (None, Some(path)) if format_of_name.is_none() && path.extension().is_some() => {
            let path = path.display();
            return Err(Failure::usage(
                format!("cannot tell the format of the summary from the name `{path}`"),
                "add `--format`, or use a name that ends in .json, .csv or .txt (also with .gz or .zst)",
            ));
        }
        (given, _) => given.or(format_of_name),
    };
    let destination = Destination::new(&OutputArgs {
        output: args.output.clone(),
        format: format.map(|format| match format {
            SummaryFormat::Table => Format::Table,
            SummaryFormat::Json => Format::Json,
            SummaryFormat::Csv => Format::Csv,
        }),
        no_clobber: args.no_clobber,
        ..OutputArgs::default()
    })?;
    if destination.template.is_some() {
        return Err(Failure::usage(
            format!("{}: a summary is one file", destination.name()),
            "name one file, and group with `--by`",
        ));
    }
    Ok((destination, format.unwrap_or(SummaryFormat::Table)))
}

fn format_of_name(path: &Path) -> Option<SummaryFormat> {
    match detect::extension(path)?.as_str() {
        "json" => Some(SummaryFormat::Json),
        "csv" => Some(SummaryFormat::Csv),
        "txt" => Some(SummaryFormat::Table),
        _ => None,
    }
}

async fn summarise(
    context: &Context,
    args: &SummaryArgs,
    request: &BatchRequest,
    destination: &Destination,
    format: SummaryFormat,
) -> anyhow::Result<()> {
    let storage = context.storage_for(&[args.output.as_deref()])?;
    let source = BatchSource::open(context, args.source.archive.as_deref())?;
    // Opened before the first request, so that an output that cannot be written fails at once.
    let mut output =
        storage.create(&destination.place, destination.compression, args.no_clobber)?;
    match format {
        SummaryFormat::Json => output.escape_on_terminal(Escapes::IndentedJson),
        SummaryFormat::Csv => output.escape_on_terminal(Escapes::Text),
        SummaryFormat::Table => {}
    }
    let now = request.now.timestamp();
    let zone = &context.settings()?.time_zone.value;
    let mut data = SummaryData::new(args.by.clone(), now, zone.clone(), !args.fail_on.is_empty());
    let left_behind = || destination.place.left_behind(&storage);
    let received = request.receive(&source, &mut data, "summary", left_behind);
    let received = received.await?;
    received.refuse_empty()?;

    let targets = &context.settings()?.targets;
    let history = data.history.as_ref();
    if let Some(history) = history.filter(|_| args.fail_on.contains(&FailOn::Target)) {
        for (meant, crop) in history.crops_meant(targets) {
            log::warn!("no batch has the crop in `[targets.{meant:?}]`; did you mean {crop:?}?");
        }
    }
    let newest = history.and_then(|history| history.judge(targets));
    let newest = newest.as_ref();
    let is_too_large = data.is_too_large;
    let sums = data.groups.finish();
    let is_stdout = destination.place.is_stdout();
    let (text, hidden_columns) = match format {
        SummaryFormat::Table => {
            let range = source.limited(&request.range)?;
            let available = source.available_range()?;
            let span = KnownSpan::new(&range, &available, now, zone.clone());
            let width = terminal::terminal_width().filter(|_| is_stdout);
            let color = is_stdout && terminal::color_on_stdout();
            summary::table(&sums, newest, &range, &span, width, color)
        }
        SummaryFormat::Json => (summary::json(&sums, newest, &request.range, zone), 0),
        SummaryFormat::Csv => (summary::csv(&sums)?, 0),
    };
    output.write_all(text.as_bytes())?;
    let published = output.publish()?;

    received.warn(figure_warnings(&sums.total.figures));
    if let hidden @ 1.. = hidden_columns as u64 {
        let columns = count(hidden, "more column does", "more columns do");
        terminal::note(&format!(
            "{columns} not fit; widen the terminal, or use `-o` or `-f json` to get all"
        ));
    }
    if is_too_large {
        terminal::note("there are too many crops and weeks to judge the crops");
    }
    let has_batches = received.counts.written > 0;
    if newest.is_none() && has_batches && !is_too_large && !args.fail_on.is_empty() {
        log::warn!("no batch has a valid date, so `--fail-on` finds nothing");
    }
    received.print_notes();
    let start = request.range.start.map(|start| zone.local(start));
    let alarm = find_alarm(newest, start, &args.fail_on);
    let conclusion = format!(
        "{} in {} ({}) to {}",
        count(received.counts.written, "batch", "batches"),
        count(sums.groups.len() as u64, "group", "groups"),
        received.describe(),
        destination.name(),
    );
    let mut result = received.result(&destination.place, &published);
    result["groups"] = sums.groups.len().into();
    terminal::finish(Some(&terminal::timed(&conclusion)), &result, alarm.as_ref());
    alarm.map_or(Ok(()), |alarm| Err(alarm.into()))
}

/// The maximum number of crops to name.
const NAMED: usize = 5;

/// Returns the alarm if a crop of the newest step is what `fail_on` looks for. The range begins at `start`, if it has
/// a start.
fn find_alarm(
    newest: Option<&NewestStep<'_>>,
    start: Option<i64>,
    fail_on: &[FailOn],
) -> Option<Failure> {
    let newest = newest?;
    if newest.cut(start, "weeks").is_some() && fail_on.contains(&FailOn::Down) {
        log::warn!(
            "the range begins less than four weeks before {}: crops are compared with fewer weeks, or not at all; begin earlier, such as with `--since 12w`",
            newest.period.label()
        );
    }
    if let Some(later) = newest.later("weeks").filter(|_| !fail_on.is_empty()) {
        log::warn!("{}", later.trim_end_matches('.'));
    }
    let has_target = || newest.present().any(|crop| crop.target_state().is_some());
    if fail_on.contains(&FailOn::Target) && !has_target() {
        log::warn!(
            "no crop of {} has a target, so `--fail-on target` finds nothing; set targets in the config file, such as `[targets.\"Tomato\"]`",
            newest.period.label()
        );
    }
    let mut crops = newest
        .present()
        .filter_map(|crop| alarm_cause(crop, fail_on));
    let mut all: Vec<String> = crops.by_ref().take(NAMED).collect();
    if let more @ 1.. = crops.count() as u64 {
        all.push(format!("and {}", count(more, "more crop", "more crops")));
    }
    let message = format!("{}: {}", newest.period.label(), all.join("; "));
    (!all.is_empty()).then(|| {
        Failure::new(Kind::Alarm, message)
            .hint("the summary is complete; `trayscan report` shows the batches behind it")
    })
}

/// Says what is wrong with a crop. `None` if it is not what `fail_on` looks for.
fn alarm_cause(crop: &CropJudgement<'_>, fail_on: &[FailOn]) -> Option<String> {
    let mut causes = Vec::new();
    if fail_on.contains(&FailOn::Down) && crop.is_down() {
        let judged = &crop.comparison;
        let [rate, change] = [judged.newest, judged.change].map(Option::unwrap_or_default);
        let [points, rate] = [change.abs(), rate].map(two_digits);
        causes.push(format!("is down {points} points to {rate} % usable"));
    }
    if fail_on.contains(&FailOn::Target) {
        causes.extend(crop.missed.iter().map(|missed| {
            format!(
                "misses its {} target of {} % with {} %",
                missed.field,
                missed.target.normalize(),
                distinct(missed.median, missed.target)
            )
        }));
    }
    if fail_on.contains(&FailOn::Attention) && crop.has_attention {
        causes.push("has batches that need attention".to_owned());
    }
    let name = if crop.name.is_empty() {
        "the group without a crop".to_owned()
    } else {
        brief(&text::visible(crop.name))
    };
    (!causes.is_empty()).then(|| format!("{name} {}", causes.join(", ")))
}
