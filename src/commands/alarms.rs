//! The alarms of `summary --fail-on`.

use super::messages::count;
use crate::analysis::judgement::{CropJudgement, NewestStep};
use crate::analysis::statistics::{distinct, two_digits};
use crate::cli::FailOn;
use crate::error::{Failure, Kind};
use crate::text::brief;

/// The maximum number of crops to name.
const NAMED: usize = 5;

/// Returns the alarm if a crop of the newest step is what `fail_on` looks for. The range begins at `start`, if it has
/// a start.
pub(super) fn find(
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
    let mut crops = newest.present().filter_map(|crop| cause(crop, fail_on));
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
fn cause(crop: &CropJudgement<'_>, fail_on: &[FailOn]) -> Option<String> {
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
        brief(crop.name)
    };
    (!causes.is_empty()).then(|| format!("{name} {}", causes.join(", ")))
}
