//! Messages that several commands share: errors, warnings and notes about the batches of a run.

use crate::analysis::statistics::Figures;
use crate::batch::{COLUMNS, columns_of_bits};
use crate::fetch::DataIssues;
use crate::pipeline::Counts;
use crate::secret::brief;
use crate::text::{self, thousands};

pub(super) use crate::text::count;

/// Returns warnings about the received batches.
pub(super) fn data_warnings(issues: &DataIssues, counts: &Counts, lenient: bool) -> Vec<String> {
    let conflicts = (counts.conflicts > 0).then(|| {
        let batches = count(counts.conflicts, "batch", "batches");
        format!("{batches} arrived again with different content; the first version was kept")
    });
    let outside = (counts.outside > 0).then(|| {
        format!(
            "{} created before or after the requested dates: the service may compare another date, or whole days, \
             so that neighbouring periods share or miss batches",
            count(counts.outside, "batch was", "batches were")
        )
    });
    let all = conflicts.into_iter().chain(outside);
    all.chain(issue_warnings(issues, lenient)).collect()
}

/// Returns warnings about batches that were accepted despite their flaws.
pub(super) fn issue_warnings(issues: &DataIssues, lenient: bool) -> Vec<String> {
    let absent = columns_of_bits(issues.absent);
    let fields = quoted(absent.iter().map(|&column| COLUMNS[column].name));
    let absent = match absent.len() {
        0 => None,
        1 => Some("is missing in some batches; it counts as null"),
        _ => Some("are missing in some batches; they count as null"),
    };
    let absent = absent.map(|missing| format!("{fields} {missing}"));
    let flawed = (lenient && issues.flawed > 0).then(|| {
        let skipped = match issues.skipped {
            0 => String::new(),
            skipped => format!(" ({} skipped: no valid batch_id)", thousands(skipped)),
        };
        format!(
            "{} the interface{skipped}; the first: {}",
            count(issues.flawed, "batch breaks", "batches break"),
            issues.example.as_deref().unwrap_or_default(),
        )
    });
    let crowded = issues.crowded_warning.as_ref();
    let crowded = crowded.map(|first| match issues.crowded.len() as u64 {
        0 | 1 => first.clone(),
        many => format!("{first}; the same applies to {} more", thousands(many - 1)),
    });
    absent.into_iter().chain(flawed).chain(crowded).collect()
}

/// Returns warnings about values that the figures leave out.
pub(super) fn figure_warnings(total: &Figures) -> Vec<String> {
    let values = total.metrics().into_iter();
    let values = values.filter(|(_, metric)| metric.beyond > 0);
    let values = values.map(|(column, metric)| {
        format!(
            "{} of `{}` {} more than 15 digits before or 10 after the decimal point; treated as missing",
            count(metric.beyond, "value", "values"),
            COLUMNS[column].name,
            if metric.beyond == 1 { "has" } else { "have" }
        )
    });
    let images = (total.odd_images > 0).then(|| {
        format!(
            "{} an invalid number of images, or one above four billion; counted as without images",
            count(total.odd_images, "batch has", "batches have")
        )
    });
    values.chain(images).collect()
}

/// Lists names, each in quotes.
pub(super) fn quoted<'a>(names: impl Iterator<Item = &'a str>) -> String {
    text::join(names.map(|name| format!("`{}`", brief(name))), ", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flaws_of_the_batches_are_counted() {
        let column = |name: &str| {
            let column = COLUMNS.iter().position(|column| column.name == name);
            1 << column.expect("a column")
        };
        let issues = DataIssues {
            flawed: 2,
            example: Some("batch 7: no crop_type".to_owned()),
            skipped: 1,
            absent: column("crop_type") | column("scanned_by_email"),
            crowded: [1, 2, 3].into(),
            crowded_warning: Some("1000 batches in one second".to_owned()),
            held_back: true,
        };
        let counts = Counts {
            conflicts: 1,
            outside: 3,
            ..Counts::default()
        };
        let warnings = data_warnings(&issues, &counts, true);
        assert_eq!(warnings.len(), 5, "{warnings:?}");
        assert_eq!(
            warnings[0],
            "1 batch arrived again with different content; the first version was kept"
        );
        assert!(
            warnings[1].starts_with("3 batches were created before or after the requested dates: "),
            "{}",
            warnings[1]
        );
        assert!(
            warnings[2].ends_with(" are missing in some batches; they count as null"),
            "{}",
            warnings[2]
        );
        assert_eq!(
            warnings[3],
            "2 batches break the interface (1 skipped: no valid batch_id); the first: batch 7: no crop_type"
        );
        assert_eq!(
            warnings[4],
            "1000 batches in one second; the same applies to 2 more"
        );
        let strict = issue_warnings(&issues, false);
        assert_eq!(strict.len(), 2, "a strict run fails at the first flaw");
        let one = DataIssues {
            absent: column("crop_type"),
            crowded: [1].into(),
            crowded_warning: Some("1000 batches in one second".to_owned()),
            ..DataIssues::default()
        };
        assert_eq!(
            issue_warnings(&one, false),
            [
                "`crop_type` is missing in some batches; it counts as null",
                "1000 batches in one second",
            ]
        );
        assert_eq!(
            data_warnings(&DataIssues::default(), &Counts::default(), true),
            [""; 0]
        );
    }

    #[test]
    fn values_that_the_figures_leave_out_are_counted() {
        let mut figures = Figures::default();
        assert_eq!(figure_warnings(&figures), [""; 0]);
        figures.usable_rate.beyond = 1;
        figures.odd_images = 2;
        let digits = "more than 15 digits before or 10 after the decimal point; treated as missing";
        let warnings = figure_warnings(&figures);
        assert_eq!(warnings.len(), 2, "{warnings:?}");
        assert!(warnings[0].starts_with("1 value of `"), "{warnings:?}");
        assert!(
            warnings[0].ends_with(&format!(" has {digits}")),
            "{warnings:?}"
        );
        assert_eq!(
            warnings[1],
            "2 batches have an invalid number of images, or one above four billion; counted as without images"
        );
    }
}
