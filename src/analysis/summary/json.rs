//! JSON: one object with one line per group. Numbers have two digits; absent values are null.

use serde::ser::{Serialize, SerializeMap as _, Serializer};
use serde_json::value::RawValue;

use super::fields::{FieldText, judgement, metrics, span};
use crate::analysis::judgement::{CropJudgement, NewestStep};
use crate::analysis::statistics::{By, Decimal, Group, GroupedFigures, Metric, two_digits};
use crate::batch::Zone;
use crate::batch::range::{Range, written};

/// Writes the groups, and the verdict of each if the groups are crops. Times are in UTC; weeks and days are
/// those of `zone`.
pub(crate) fn json(
    grouped: &GroupedFigures,
    newest: Option<&NewestStep<'_>>,
    range: &Range,
    zone: Zone,
) -> serde_json::Result<String> {
    let [first, last] = span(&grouped.total.figures);
    let by: Vec<&str> = grouped.by.iter().map(|by| by.name()).collect();
    let range = serde_json::json!({
        "start": range.start.map(written),
        "end": range.end.map(written),
        "excludes_end": range.excludes_end,
        "first_batch": first,
        "last_batch": last,
    });
    let marks = grouped.marks.map(|marks| {
        serde_json::json!({
            "start": written(zone.instant(marks.first)),
            "seconds": marks.each,
            "count": marks.count,
        })
    });
    let step = newest.map(|newest| {
        serde_json::json!({
            "week": newest.period.label(),
            "start": written(zone.instant(newest.period.first())),
            "end": written(zone.instant(newest.period.next().first())),
        })
    });
    let groups = grouped.groups.iter();
    let rows = groups.map(|group| row(&grouped.by, group, judgement(grouped, newest, group)));
    let rows = rows.collect::<Result<Vec<String>, _>>()?.join(",\n");
    Ok(format!(
        "{{\"range\":{range},\n\"by\":{},\n\"newest_step\":{},\n\"sparkline\":{},\n\"groups\":[{}{rows}{}],\n\"total\":{}}}\n",
        serde_json::to_string(&by)?,
        serde_json::to_string(&step)?,
        serde_json::to_string(&marks)?,
        if rows.is_empty() { "" } else { "\n" },
        if rows.is_empty() { "" } else { "\n" },
        row(&[], &grouped.total, None)?,
    ))
}

fn row(by: &[By], group: &Group, crop: Option<&CropJudgement<'_>>) -> serde_json::Result<String> {
    serde_json::to_string(&JsonGroup { by, group, crop })
}

struct JsonGroup<'a> {
    by: &'a [By],
    group: &'a Group,
    /// The judgement, if the group is a crop.
    crop: Option<&'a CropJudgement<'a>>,
}

impl Serialize for JsonGroup<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let figures = &self.group.figures;
        let mut map = serializer.serialize_map(None)?;
        for (by, part) in self.by.iter().zip(&self.group.key) {
            map.serialize_entry(by.name(), &part.name())?;
        }
        map.serialize_entry("batches", &figures.batches)?;
        map.serialize_entry("images", &figures.images)?;
        map.serialize_entry("warnings", &figures.warnings)?;
        for (name, metric) in metrics(figures) {
            map.serialize_entry(name, &JsonField(metric))?;
            if name == "usable_rate" {
                map.serialize_entry("gap", &number(figures.gap().map(two_digits)))?;
            }
        }
        let [first, last] = span(figures);
        map.serialize_entry("first_batch", &first)?;
        map.serialize_entry("last_batch", &last)?;
        let shown = |median: &Option<Decimal>| number(median.map(two_digits));
        let medians: Vec<_> = self.group.trend.iter().map(shown).collect();
        map.serialize_entry("sparkline", &medians)?;
        if let Some(crop) = self.crop {
            let judged = &crop.comparison;
            map.serialize_entry("verdict", judged.verdict.name())?;
            map.serialize_entry("usable_rate_change", &shown(&judged.change))?;
            let newest = JsonMedian(judged.newest, judged.newest_count);
            map.serialize_entry("usable_rate_newest", &newest)?;
            let before = JsonMedian(judged.before, judged.before_count);
            map.serialize_entry("usable_rate_before", &before)?;
            map.serialize_entry("target", &crop.target_state())?;
            map.serialize_entry("attention", &crop.has_attention)?;
        }
        map.end()
    }
}

/// A median and the number of its values.
struct JsonMedian(Option<Decimal>, u64);

impl Serialize for JsonMedian {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("median", &number(self.0.map(two_digits)))?;
        map.serialize_entry("batches", &self.1)?;
        map.end()
    }
}

struct JsonField<'a>(&'a Metric);

impl Serialize for JsonField<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let text = FieldText::of(self.0);
        let mut map = serializer.serialize_map(Some(5))?;
        map.serialize_entry("q1", &number(text.low))?;
        map.serialize_entry("median", &number(text.median))?;
        map.serialize_entry("q3", &number(text.high))?;
        map.serialize_entry("weighted_mean", &number(text.weighted_mean))?;
        map.serialize_entry("missing", &self.0.missing)?;
        map.end()
    }
}

/// Returns a JSON number with exactly these digits.
fn number(digits: Option<String>) -> Option<Box<RawValue>> {
    digits.and_then(|digits| RawValue::from_string(digits).ok())
}
