//! CSV: a row per group, without a total. Absent values are empty.

use std::io;

use super::fields::{FieldText, metrics, span};
use crate::analysis::statistics::{Figures, GroupedFigures, two_digits};

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
        let text = FieldText::of(metric);
        add(&format!("{name}_q1"), text.low);
        add(&format!("{name}_median"), text.median);
        add(&format!("{name}_q3"), text.high);
        add(&format!("{name}_weighted_mean"), text.weighted_mean);
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
