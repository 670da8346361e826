//! What `export` says at its end: the last line, warnings, notes, and what a failed run leaves behind.

use super::request::ExportRequest;
use crate::commands::batches::Received;
use crate::commands::messages::{count, quoted};
use crate::commands::source::BatchSource;
use crate::export::Destination;
use crate::export::manifest::ManifestFile;
use crate::formats::{self, WriterReport};
use crate::storage::cleanup::PublishedObjects;
use crate::storage::{Location, Storage};
use crate::text::thousands;

/// Returns the last line of an export of everything, without the time.
pub(super) fn full_export(
    request: &ExportRequest,
    received: &Received<'_>,
    written: &[ManifestFile],
    report: &WriterReport,
) -> String {
    let rows = report.counts.as_ref();
    format!(
        "{} ({}) to {}{}",
        count(received.counts.written, "batch", "batches"),
        received.describe(),
        output_name(&request.destination, written),
        rows.map_or_else(String::new, |rows| format!(" ({rows})")),
    )
}

/// Returns the last line of an export that rewrote only some files, without the time.
pub(super) fn partial_export(
    request: &ExportRequest,
    source: &BatchSource,
    written: &[ManifestFile],
    kept: &[ManifestFile],
    removed: u64,
    batches: u64,
) -> String {
    let removed = match removed {
        0 => String::new(),
        removed => format!(", {} removed", count(removed, "file", "files")),
    };
    format!(
        "{} rewritten{removed}: {} now has {} in {} (from {})",
        count(written.len() as u64, "file", "files"),
        request.destination.name(),
        count(batches, "batch", "batches"),
        count((written.len() + kept.len()) as u64, "file", "files"),
        source.name(),
    )
}

/// Names the output, with the number of files if there may be many.
fn output_name(destination: &Destination, written: &[ManifestFile]) -> String {
    if destination.template.is_none() {
        return destination.name();
    }
    let files = count(written.len() as u64, "file", "files");
    format!("{files}, {}", destination.name())
}

/// Says what an unfinished run leaves behind.
pub(super) fn left_behind(destination: &Destination, storage: &Storage) -> String {
    if destination.template.is_none() {
        return destination.place.left_behind(storage);
    }
    let is_unpublished = storage.cleanup.published_objects() == PublishedObjects::None;
    match (&destination.place, storage.cleanup.published_files()) {
        // Each object is a request of its own, so some may be published and others not.
        (Location::Object(_), _) if !is_unpublished => {
            let name = destination.name();
            format!("each file of {name} is as it was before, or new and whole")
        }
        (Location::Object(_), _) | (_, 0) => "nothing was published".to_owned(),
        (_, 1) => "the new file is complete".to_owned(),
        (_, files) => format!("all {} new files are complete", thousands(files as u64)),
    }
}

/// Returns warnings about what the format cannot store.
pub(super) fn format_warnings(report: &WriterReport, destination: &Destination) -> Vec<String> {
    let format = destination.format.name();
    let mut warnings = report.partition_warnings.clone();
    if !report.left_out.is_empty() {
        let listed = report.left_out.iter().take(formats::LEFT_OUT_LIMIT);
        let fields = quoted(listed.map(String::as_str));
        let (the_fields, others, were) = match report.left_out.len() {
            1 => ("the field", "", "it was"),
            ..=formats::LEFT_OUT_LIMIT => ("the fields", "", "they were"),
            _ => ("the fields", " and others", "they were"),
        };
        warnings.push(format!(
            "{format} has no column for {the_fields} {fields}{others}; {were} left out"
        ));
    }
    if report.escaped_cells > 0 {
        let cells = count(
            report.escaped_cells,
            "text cell contains",
            "text cells contain",
        );
        warnings.push(match &destination.place {
            Location::Table(_) => format!(
                "{cells} the character U+0000, which PostgreSQL cannot store; it is written as the escape \\u{{0}}"
            ),
            _ => format!(
                "{cells} control characters that {format} cannot store; they are written as escapes such as \\u{{1}}"
            ),
        });
    }
    warnings
}

/// Returns notes about the written cells and columns.
pub(super) fn format_notes(report: &WriterReport) -> Vec<String> {
    let formulas = (report.formula_cells > 0).then(|| {
        let (run, them) = match report.formula_cells {
            1 => ("text cell would run as a formula", "it"),
            _ => ("text cells would run as formulas", "them"),
        };
        let cells = thousands(report.formula_cells);
        format!("{cells} {run} in a spreadsheet; `--excel` makes {them} harmless")
    });
    let hidden = (report.hidden_columns > 0).then(|| {
        let columns = report.hidden_columns as u64;
        let columns = count(columns, "more column does", "more columns do");
        format!("{columns} not fit; choose columns with `--fields`, or write a file with `-o`")
    });
    let dates = (report.text_dates > 0).then(|| {
        let it = if report.text_dates == 1 { "it" } else { "them" };
        let dates = count(report.text_dates, "date is", "dates are");
        format!("{dates} written as text: a spreadsheet cannot store {it} exactly")
    });
    let notes = formulas.into_iter().chain(hidden);
    notes.chain(dates).collect()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::cli::OutputArgs;

    fn destination(output: &str) -> Destination {
        Destination::new(&OutputArgs {
            output: Some(PathBuf::from(output)),
            ..OutputArgs::default()
        })
        .expect("a destination")
    }

    #[test]
    fn fields_without_a_column_are_named() {
        let csv = destination("a.csv");
        let warnings = |left_out: &[&str]| {
            let left_out = left_out.iter().map(ToString::to_string).collect();
            let report = WriterReport {
                left_out,
                ..WriterReport::default()
            };
            format_warnings(&report, &csv)
        };
        assert_eq!(warnings(&[]), [""; 0]);
        assert_eq!(
            warnings(&["a"]),
            ["csv has no column for the field `a`; it was left out"]
        );
        assert_eq!(
            warnings(&["a", "b"]),
            ["csv has no column for the fields `a`, `b`; they were left out"]
        );
        let many: Vec<String> = (0..=formats::LEFT_OUT_LIMIT)
            .map(|n| n.to_string())
            .collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let all = warnings(&many).concat();
        assert!(all.ends_with(" and others; they were left out"), "{all}");
        let last = format!("`{}`", formats::LEFT_OUT_LIMIT);
        assert!(!all.contains(&last), "{all}");
    }

    #[test]
    fn cells_that_are_not_written_as_they_are_get_a_warning_or_a_note() {
        let report = |cells| WriterReport {
            escaped_cells: cells,
            formula_cells: cells,
            hidden_columns: usize::try_from(cells).expect("a small number"),
            ..WriterReport::default()
        };
        let xlsx = destination("a.xlsx");
        assert_eq!(format_warnings(&report(0), &xlsx), [""; 0]);
        assert_eq!(format_notes(&report(0)), [""; 0]);
        let escapes =
            "control characters that xlsx cannot store; they are written as escapes such as \\u{1}";
        for (cells, contain, notes) in [
            (
                1,
                "1 text cell contains",
                [
                    "1 text cell would run as a formula in a spreadsheet; `--excel` makes it harmless",
                    "1 more column does not fit; choose columns with `--fields`, or write a file with `-o`",
                ],
            ),
            (
                2,
                "2 text cells contain",
                [
                    "2 text cells would run as formulas in a spreadsheet; `--excel` makes them harmless",
                    "2 more columns do not fit; choose columns with `--fields`, or write a file with `-o`",
                ],
            ),
        ] {
            let expected = [format!("{contain} {escapes}")];
            assert_eq!(format_warnings(&report(cells), &xlsx), expected);
            assert_eq!(format_notes(&report(cells)), notes);
        }
    }

    #[test]
    fn many_files_are_counted_in_the_name_of_the_output() {
        assert_eq!(output_name(&destination("a.csv"), &[]), "`a.csv`");
        let lake = destination("lake/{month}.csv");
        let name = output_name(&lake, &[]);
        assert_eq!(name, format!("0 files, {}", lake.name()));
        assert_eq!(
            left_behind(&lake, &Storage::default()),
            "nothing was published"
        );
    }
}
