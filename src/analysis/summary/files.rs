//! The groups for programs: JSON, one object with one line per group; and CSV, a row per group without a total. Numbers have two
//! digits. Absent values are null or empty.

use std::fmt::Write as _;
use std::io;

use serde::Serialize;
use serde_json::json;

use crate::analysis::judgement::{CropJudgement, NewestStep};
use crate::analysis::statistics::{By, Figures, Group, GroupedFigures, Metric, two_digits};
use crate::batch::Zone;
use crate::batch::range::{Range, written};
use crate::text::join;

/// Returns the metrics, with their names in files.
pub(super) fn metrics(figures: &Figures) -> [(&'static str, &Metric); 4] {
    [
        ("germination_rate", &figures.germination_rate),
        ("usable_rate", &figures.usable_rate),
        ("seedling_size_mm2", &figures.seedling_size),
        (
            "coefficient_of_variation",
            &figures.coefficient_of_variation,
        ),
    ]
}

/// Returns the quartiles of a field and its weighted mean as text: the lower one, the median, the upper one, the mean. `None` if
/// there is no value.
pub(super) fn field_texts(metric: &Metric) -> [Option<String>; 4] {
    let quartiles = metric.distribution.quartiles();
    let [low, median, high] = [0, 1, 2].map(|index| quartiles.map(|found| found[index]));
    [low, median, high, metric.weighted_mean()].map(|number| number.map(two_digits))
}

/// Returns when the first and the last batch were created.
pub(super) fn span(figures: &Figures) -> [Option<String>; 2] {
    [&figures.first, &figures.last]
        .map(|moment| moment.as_ref().map(|moment| written(moment.second)))
}

/// Returns the judgement of a group, if the groups are crops.
pub(super) fn judgement<'a>(
    grouped: &GroupedFigures,
    newest: Option<&'a NewestStep<'a>>,
    group: &Group,
) -> Option<&'a CropJudgement<'a>> {
    let newest = newest.filter(|_| grouped.by == [By::CropType])?;
    let name = group.key.first()?.name();
    newest.crop(name.as_deref().unwrap_or(""))
}

/// The names of [`field_texts`] in files.
const FIELD_KEYS: [&str; 4] = ["q1", "median", "q3", "weighted_mean"];

pub(crate) fn csv(grouped: &GroupedFigures) -> io::Result<String> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    let keys = grouped.by.iter().map(|by| by.name().to_owned());
    // All groups have the same columns, even if there is no group.
    let names = columns(&Figures::default()).into_iter();
    writer.write_record(keys.chain(names.map(|(name, _)| name)))?;
    for group in &grouped.groups {
        let keys = group.key.iter().map(|part| part.name().unwrap_or_default());
        let cells = columns(&group.figures).into_iter().map(|(_, cell)| cell);
        writer.write_record(keys.chain(cells))?;
    }
    let bytes = writer.into_inner();
    let bytes = bytes.map_err(csv::IntoInnerError::into_error)?;
    String::from_utf8(bytes).map_err(io::Error::other)
}

/// Returns the column names and cells of a group.
fn columns(figures: &Figures) -> Vec<(String, String)> {
    let mut columns = Vec::new();
    let mut add = |name: &str, cell: Option<String>| {
        columns.push((name.to_owned(), cell.unwrap_or_default()));
    };
    add("batches", Some(figures.batches.to_string()));
    add("images", Some(figures.images.to_string()));
    add("warnings", Some(figures.warnings.to_string()));
    for (name, metric) in metrics(figures) {
        for (suffix, text) in FIELD_KEYS.iter().zip(field_texts(metric)) {
            add(&format!("{name}_{suffix}"), text);
        }
        add(&format!("{name}_missing"), Some(metric.missing.to_string()));
        if name == "usable_rate" {
            add("gap", figures.gap().map(two_digits));
        }
    }
    let [first, last] = span(figures);
    add("first_batch", first);
    add("last_batch", last);
    columns
}

/// Writes the groups, and the verdict of each if the groups are crops. Times are in UTC; weeks and days are
/// those of `zone`.
pub(crate) fn json(
    grouped: &GroupedFigures,
    newest: Option<&NewestStep<'_>>,
    range: &Range,
    zone: &Zone,
) -> String {
    let [first, last] = span(&grouped.total.figures);
    let by: Vec<&str> = grouped.by.iter().map(|by| by.name()).collect();
    let range = json!({
        "start": range.start.map(written),
        "end": range.end.map(written),
        "excludes_end": range.excludes_end,
        "first_batch": first,
        "last_batch": last,
    });
    let marks = grouped.marks.map(|marks| {
        json!({
            "start": written(zone.instant(marks.first)),
            "seconds": marks.each,
            "count": marks.count,
        })
    });
    let step = newest.map(|newest| {
        json!({
            "week": newest.period.label(),
            "start": written(zone.instant(newest.period.first())),
            "end": written(zone.instant(newest.period.next().first())),
        })
    });
    let groups = grouped.groups.iter();
    let rows = groups.map(|group| row(&grouped.by, group, judgement(grouped, newest, group)));
    let rows = join(rows, ",\n");
    format!(
        "{{\"range\":{range},\n\"by\":{},\n\"newest_step\":{},\n\"sparkline\":{},\n\"groups\":[{}{rows}{}],\n\"total\":{}}}\n",
        json!(by),
        json!(step),
        json!(marks),
        if rows.is_empty() { "" } else { "\n" },
        if rows.is_empty() { "" } else { "\n" },
        row(&[], &grouped.total, None),
    )
}

/// Returns a group as one JSON object; `crop` is its judgement, if it is a crop.
fn row(by: &[By], group: &Group, crop: Option<&CropJudgement<'_>>) -> String {
    let figures = &group.figures;
    let mut object = JsonObject::default();
    for (by, part) in by.iter().zip(&group.key) {
        object.add(by.name(), &part.name());
    }
    object.add("batches", &figures.batches);
    object.add("images", &figures.images);
    object.add("warnings", &figures.warnings);
    for (name, metric) in metrics(figures) {
        let mut field = JsonObject::default();
        for (key, text) in FIELD_KEYS.iter().zip(field_texts(metric)) {
            field.add_number(key, text.as_deref());
        }
        field.add("missing", &metric.missing);
        object.add_json(name, &field.end());
        if name == "usable_rate" {
            object.add_number("gap", figures.gap().map(two_digits).as_deref());
        }
    }
    let [first, last] = span(figures);
    object.add("first_batch", &first);
    object.add("last_batch", &last);
    let medians = group.trend.iter();
    let medians = medians.map(|median| median.map_or("null".to_owned(), two_digits));
    object.add_json("sparkline", &format!("[{}]", join(medians, ",")));
    if let Some(crop) = crop {
        let judged = &crop.comparison;
        object.add("verdict", &judged.verdict.name());
        object.add_number(
            "usable_rate_change",
            judged.change.map(two_digits).as_deref(),
        );
        for (key, median, batches) in [
            ("usable_rate_newest", judged.newest, judged.newest_count),
            ("usable_rate_before", judged.before, judged.before_count),
        ] {
            let mut field = JsonObject::default();
            field.add_number("median", median.map(two_digits).as_deref());
            field.add("batches", &batches);
            object.add_json(key, &field.end());
        }
        object.add("target", &crop.target_state());
        object.add("attention", &crop.has_attention);
    }
    object.end()
}

/// A JSON object that keeps the order of its keys and the digits of its numbers.
#[derive(Default)]
struct JsonObject(String);

impl JsonObject {
    fn add(&mut self, key: &str, value: &impl Serialize) {
        self.add_json(key, &json!(value).to_string());
    }

    /// Adds a number with exactly these digits.
    fn add_number(&mut self, key: &str, digits: Option<&str>) {
        self.add_json(key, digits.unwrap_or("null"));
    }

    fn add_json(&mut self, key: &str, json: &str) {
        let comma = if self.0.is_empty() { "" } else { "," };
        // Writing to a string cannot fail.
        let _ = write!(self.0, "{comma}\"{key}\":{json}");
    }

    fn end(self) -> String {
        format!("{{{}}}", self.0)
    }
}
