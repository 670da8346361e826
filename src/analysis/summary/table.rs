//! The table: a row per group, a total, and a legend below.

use std::borrow::Cow;

use anstyle::{AnsiColor, Style};
use unicode_width::UnicodeWidthStr as _;

use super::files::{field_texts, judgement, metrics, span};
use crate::analysis::KnownSpan;
use crate::analysis::judgement::{CropJudgement, MIN_BATCHES, NewestStep, Verdict};
use crate::analysis::statistics::{By, Decimal, Group, GroupedFigures, two_digits};
use crate::batch::range::Range;
use crate::formats::NO_CROP;
use crate::terminal::{GAP, GridCell, push_row, push_styled, shorten};
use crate::text::{self, join, one_line, visible};

/// The name of the last row.
const TOTAL: &str = "total";
/// The title of the sparkline column.
const TREND: &str = "trend";
/// The title of the column of verdicts.
const VERDICT: &str = "newest week";
/// Marks a crop that is down.
const DOWN: &str = "▼";
/// Shown if the name of a person, or a date, is absent.
const UNKNOWN: &str = "unknown";

const HEADER: Style = Style::new().bold();
const MARK: Style = AnsiColor::Yellow.on_default().bold();
const QUIET: Style = Style::new().dimmed();

/// Draws the groups of the batches in `range`, and the verdict of each if the groups are crops. `width` is that of the terminal, if
/// the output is one. Returns also the number of columns that do not fit.
pub(crate) fn table(
    grouped: &GroupedFigures,
    newest: Option<&NewestStep<'_>>,
    range: &Range,
    span: &KnownSpan,
    width: Option<usize>,
    color: bool,
) -> (String, usize) {
    if grouped.groups.is_empty() {
        return (format!("no batches ({})\n", range.describe()), 0);
    }
    let scale = Scale::of(grouped);
    let mut columns = keys(grouped);
    let newest = newest.filter(|_| grouped.by == [By::CropType]);
    columns.extend(figures(grouped, newest, scale.as_ref()));
    let all = columns.len();
    if let Some(width) = width {
        shorten_names(&mut columns, width);
        drop_columns(&mut columns, width);
    }
    let mut text = String::new();
    let rows = grouped.groups.len();
    let title = |column: &TableColumn| (column.title.into(), HEADER);
    push_line(&mut text, &columns, color, title);
    let rule = |column: &TableColumn| ("─".repeat(column.width).into(), Style::new());
    push_line(&mut text, &columns, color, rule);
    // The last row is the total.
    for row in 0..=rows {
        if row == rows {
            push_line(&mut text, &columns, color, rule);
        }
        push_line(&mut text, &columns, color, |column| {
            let cell = column.cells[row].as_str();
            let is_marked = (column.marked)(cell);
            (cell.into(), if is_marked { MARK } else { Style::new() })
        });
    }
    text.push('\n');
    let quiet = if color { QUIET } else { Style::new() };
    for line in remarks(grouped, newest, range, span, scale.as_ref(), &columns) {
        for part in wrapped(&line, width.unwrap_or(usize::MAX)) {
            push_styled(&mut text, &part, quiet);
            text.push('\n');
        }
    }
    (text, all - columns.len())
}

struct TableColumn {
    title: &'static str,
    /// One for each group, then the total.
    cells: Vec<String>,
    width: usize,
    /// The column with the largest number is dropped first if there is no room. `None` is never dropped.
    drop_order: Option<u8>,
    right: bool,
    /// Whether to highlight a cell.
    marked: fn(&str) -> bool,
    /// The minimum width if its cells may be shortened.
    min_width: Option<usize>,
}

impl TableColumn {
    fn new(title: &'static str, drop_order: u8, cells: Vec<String>) -> Self {
        let widths = cells.iter().map(|cell| cell.width());
        Self {
            width: widths.max().unwrap_or(0).max(title.width()),
            title,
            cells,
            drop_order: Some(drop_order),
            right: true,
            marked: |_| false,
            min_width: None,
        }
    }

    /// Shortens names that are wider than `width`.
    fn cut(&mut self, width: usize) {
        let Some(least) = self.min_width else {
            return;
        };
        let width = width.max(least);
        for cell in &mut self.cells {
            *cell = shorten(cell, width).into_owned();
        }
        let widths = self.cells.iter().map(|cell| cell.width());
        self.width = widths.max().unwrap_or(0).max(self.title.width());
    }
}

/// Returns the key columns.
fn keys(grouped: &GroupedFigures) -> Vec<TableColumn> {
    let columns = grouped.by.iter().enumerate().map(|(index, by)| {
        let absent = if *by == By::CropType {
            NO_CROP
        } else {
            UNKNOWN
        };
        let rows = grouped.groups.iter().map(|group| {
            let name = group.key[index].name();
            let name = name.map(|name| one_line(&visible(&name)).into_owned());
            name.unwrap_or_else(|| absent.to_owned())
        });
        let total = if index == 0 { TOTAL } else { "" };
        let cells = rows.chain([total.to_owned()]).collect();
        let title = match by.name() {
            "crop_type" => "crop",
            "scanned_by_email" => "scanned by",
            other => other,
        };
        TableColumn {
            drop_order: None,
            right: false,
            min_width: (by.step().is_none()).then(|| title.width().max(total.width())),
            ..TableColumn::new(title, 0, cells)
        }
    });
    columns.collect()
}

/// Returns the columns with figures, from left to right.
fn figures(
    grouped: &GroupedFigures,
    newest: Option<&NewestStep<'_>>,
    scale: Option<&Scale>,
) -> Vec<TableColumn> {
    let rows = || grouped.groups.iter().chain([&grouped.total]);
    let column = |title, drop_order, cell: &dyn Fn(&Group) -> String| {
        TableColumn::new(title, drop_order, rows().map(cell).collect())
    };
    let texts: Vec<_> = rows()
        .map(|group| metrics(&group.figures).map(|(_, metric)| field_texts(metric)))
        .collect();
    let field = |title, drop_order, index: usize, cell: fn(&[Option<String>; 4]) -> String| {
        let cells = texts.iter().map(|texts| cell(&texts[index]));
        TableColumn::new(title, drop_order, cells.collect())
    };
    let median = |[_, median, ..]: &[Option<String>; 4]| median.clone().unwrap_or_default();
    let mean = |[.., mean]: &[Option<String>; 4]| mean.clone().unwrap_or_default();
    let quartiles = |[low, _, high, _]: &[Option<String>; 4]| match (low, high) {
        (Some(low), Some(high)) => format!("[{low}–{high}]"),
        _ => String::new(),
    };
    let verdict = newest.map(|newest| TableColumn {
        right: false,
        marked: |cell| cell.starts_with(DOWN),
        ..column(VERDICT, 2, &|group| {
            judgement(grouped, Some(newest), group).map_or_else(String::new, verdict)
        })
    });
    let figures = vec![
        column("batches", 0, &|group| group.figures.batches.to_string()),
        column("images", 9, &|group| group.figures.images.to_string()),
        field("germ. %", if newest.is_some() { 3 } else { 2 }, 0, median),
        field("[quartiles]", 8, 0, quartiles),
        field("mean", 13, 0, mean),
        field("usable %", 1, 1, median),
        field("[quartiles]", 7, 1, quartiles),
        field("mean", 12, 1, mean),
        column("gap", 5, &|group| {
            group.figures.gap().map_or_else(String::new, two_digits)
        }),
        field("size mm²", 10, 2, median),
        field("CV %", 11, 3, median),
        TableColumn {
            marked: |cell| cell != "0",
            ..column("warn", 6, &|group| group.figures.warnings.to_string())
        },
        TableColumn {
            right: false,
            ..column(TREND, 4, &|group| {
                scale.map_or_else(String::new, |scale| scale.draw(&group.trend))
            })
        },
    ];
    figures.into_iter().chain(verdict).collect()
}

/// Returns the verdict on a crop, such as `▼ down 10.49`.
fn verdict(crop: &CropJudgement<'_>) -> String {
    let change = crop.comparison.change.unwrap_or_default().abs();
    match crop.comparison.verdict {
        Verdict::Down => format!("{DOWN} down {}", two_digits(change)),
        Verdict::Up => format!("▲ up {}", two_digits(change)),
        verdict @ (Verdict::Usual | Verdict::TooFew) => verdict.name().to_owned(),
    }
}

fn total_width(columns: &[TableColumn]) -> usize {
    let widths: usize = columns.iter().map(|column| column.width + GAP.len()).sum();
    widths.saturating_sub(GAP.len())
}

/// Shortens names if the most important columns do not fit. All other columns are dropped first.
fn shorten_names(columns: &mut [TableColumn], width: usize) {
    /// Number of batches, usable rate, and verdict or else germination rate: a row is useless without them.
    const LEAST: u8 = 2;
    let names = columns.iter().filter(|column| column.min_width.is_some());
    let longest = names.map(|column| column.width).max().unwrap_or(0);
    for most in (1..=longest).rev() {
        for column in columns.iter_mut() {
            column.cut(most);
        }
        let needed = columns.iter();
        let needed = needed.filter(|column| column.drop_order.is_none_or(|n| n <= LEAST));
        let needed: usize = needed.map(|column| column.width + GAP.len()).sum();
        if needed <= width + GAP.len() {
            break;
        }
    }
}

/// Drops columns, the least important first, until the others fit.
fn drop_columns(columns: &mut Vec<TableColumn>, width: usize) {
    while total_width(columns) > width {
        let index = (0..columns.len())
            .filter(|&index| columns[index].drop_order.is_some())
            .max_by_key(|&index| columns[index].drop_order);
        let Some(index) = index else { break };
        columns.remove(index);
    }
}

fn push_line<'a>(
    text: &mut String,
    columns: &'a [TableColumn],
    color: bool,
    cell: impl Fn(&'a TableColumn) -> (Cow<'a, str>, Style),
) {
    let cells = columns.iter().map(|column| {
        let (text, style) = cell(column);
        GridCell {
            text,
            style: if color { style } else { Style::new() },
            width: column.width,
            is_right_aligned: column.right,
        }
    });
    push_row(text, cells);
}

/// Explains the columns. `None` if there is nothing to explain.
fn legend(columns: &[TableColumn]) -> Option<String> {
    let has = |title: &str| columns.iter().any(|column| column.title == title);
    // The other median columns are only shown together with one of these.
    if !["germ. %", "usable %"].into_iter().any(has) {
        return None;
    }
    let text_if = |title: &str, words: &'static str| if has(title) { words } else { "" };
    Some(format!(
        "Medians of batches, each counted equally{}{}. Rates in %{}.",
        text_if("[quartiles]", ", with quartiles in brackets"),
        text_if("mean", "; mean weighted by images"),
        text_if("gap", ", gap in points"),
    ))
}

/// Returns the lines below the table.
fn remarks(
    grouped: &GroupedFigures,
    newest: Option<&NewestStep<'_>>,
    range: &Range,
    known: &KnownSpan,
    scale: Option<&Scale>,
    columns: &[TableColumn],
) -> Vec<String> {
    let figures = &grouped.total.figures;
    let mut remarks: Vec<String> = legend(columns).into_iter().collect();
    let has_trend = columns.iter().any(|column| column.title == TREND);
    if let (Some(scale), Some(marks)) = (scale.filter(|_| has_trend), grouped.marks) {
        let is_timed = grouped.by.iter().any(|by| by.step().is_some());
        let each = duration(marks.each);
        let each = if is_timed {
            format!("each mark is a twelfth of the row's own period ({each} in the total)")
        } else {
            format!("each mark is {each}")
        };
        let (low, high) = (two_digits(scale.low), two_digits(scale.high));
        let rates = if scale.low == scale.high {
            format!("{low} in all marks")
        } else {
            format!("from {low} (▁) to {high} (█)")
        };
        remarks.push(format!(
            "Trend: median usable rate {rates}, {each}; blank if there are no values."
        ));
    }
    let has_verdict = columns.iter().any(|column| column.title == VERDICT);
    if let Some(newest) = newest.filter(|_| has_verdict) {
        let share = known.share(newest.period);
        let share = share.map_or_else(String::new, |share| format!(", {share}"));
        remarks.push(format!(
            "Newest week ({}{share}): the median usable rate of each crop compared with its own previous four weeks; down or up from 2 points and 3 standard errors, too_few below {MIN_BATCHES} batches.",
            newest.period.label()
        ));
        remarks.extend(newest.cut(known.start(), "weeks"));
        remarks.extend(newest.later("weeks"));
    }
    let batches = text::count(figures.batches, "batch", "batches");
    let created = match span(figures) {
        [Some(first), Some(last)] => format!(", created {first} to {last}"),
        _ => String::new(),
    };
    remarks.push(format!("{batches} ({}){created}.", range.describe()));
    let missing = metrics(figures).map(|(name, metric)| (name.replace('_', " "), metric.missing));
    let count: u64 = missing.iter().map(|(_, count)| count).sum();
    if count > 0 {
        let parts = missing.iter().filter(|(_, count)| *count > 0);
        let parts = parts.map(|(name, count)| format!("{count} of {name}"));
        let parts = join(parts, ", ").replace(" mm2", "");
        let values = if count == 1 { "value" } else { "values" };
        remarks.push(format!("{count} {values} missing: {parts}."));
    }
    remarks
}

/// Formats the length of a mark, in whole hours or days.
fn duration(seconds: i64) -> String {
    let (number, unit) = if seconds % 86_400 == 0 {
        (seconds / 86_400, "day")
    } else {
        (seconds / 3600, "hour")
    };
    format!("{number} {unit}{}", if number == 1 { "" } else { "s" })
}

/// Breaks `text` between words, so that no line is wider than `width`.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ') {
        match lines.last_mut() {
            Some(line) if line.width() + 1 + word.width() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The least length of the scale of a sparkline, as in the report.
const LEAST_POINTS: i64 = 20;

/// The values of the lowest and the highest bar of a sparkline, the same in every row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Scale {
    low: Decimal,
    high: Decimal,
}

impl Scale {
    /// Returns the scale that fits every row. `None` if there is no median.
    fn of(grouped: &GroupedFigures) -> Option<Self> {
        let rows = grouped.groups.iter().chain([&grouped.total]);
        let medians = rows.flat_map(|row| row.trend.iter().flatten().copied());
        let (low, high) = (medians.clone().min()?, medians.max()?);
        Some(Self::widened(low, high))
    }

    /// Returns a scale of some points around these values, so that small differences look small. It leaves 0 to 100 only
    /// if a value does.
    fn widened(low: Decimal, high: Decimal) -> Self {
        let missing = Decimal::from(LEAST_POINTS) - (high - low);
        if missing <= Decimal::ZERO || low == high {
            return Self { low, high };
        }
        let least = low.min(Decimal::ZERO);
        let most = high.max(Decimal::ONE_HUNDRED);
        let high = (high + missing / Decimal::TWO).min(most);
        let low = (high - Decimal::from(LEAST_POINTS)).max(least);
        let high = (low + Decimal::from(LEAST_POINTS)).min(most);
        Self { low, high }
    }

    /// Draws `medians`, with a blank for each `None`.
    fn draw(&self, medians: &[Option<Decimal>]) -> String {
        let bars = medians
            .iter()
            .map(|median| median.map_or(' ', |median| self.bar(median)));
        bars.collect::<String>().trim_end().to_owned()
    }

    fn bar(&self, median: Decimal) -> char {
        // Eight parts of equal size; the last includes its end. If all are equal, the bar is in the middle.
        if self.low == self.high {
            return BARS[3];
        }
        let eighths = (median - self.low) * Decimal::from(8);
        let is_reached = |index: &usize| eighths >= (self.high - self.low) * Decimal::from(*index);
        BARS[(1..BARS.len()).rev().find(is_reached).unwrap_or(0)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_between_words() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("one two three", 6), ["one", "two", "three"]);
        assert_eq!(wrapped("one two three", usize::MAX), ["one two three"]);
    }

    #[test]
    fn marks_are_hours_or_days() {
        assert_eq!(duration(3600), "1 hour");
        assert_eq!(duration(8 * 3600), "8 hours");
        assert_eq!(duration(96 * 86_400), "96 days");
    }

    fn drawn(low: i64, high: i64, medians: &[Option<i64>]) -> String {
        let decimal = |number: i64| Decimal::new(number, 2);
        let scale = Scale {
            low: decimal(low),
            high: decimal(high),
        };
        let medians: Vec<Option<Decimal>> =
            medians.iter().map(|median| median.map(decimal)).collect();
        scale.draw(&medians)
    }

    #[test]
    fn bars_are_eight_parts_of_the_scale() {
        let medians: Vec<Option<i64>> = (0..=8).map(|index| Some(5000 + index * 100)).collect();
        assert_eq!(drawn(5000, 5800, &medians), "▁▂▃▄▅▆▇██");
        assert_eq!(
            drawn(5000, 5800, &[Some(5099), Some(5100), Some(5799)]),
            "▁▂█"
        );
    }

    #[test]
    fn small_differences_do_not_fill_the_scale() {
        let scale = |low: i64, high: i64| {
            let decimal = |hundredths| Decimal::new(hundredths, 2);
            let scale = Scale::widened(decimal(low), decimal(high));
            [scale.low, scale.high].map(|bound| bound.normalize())
        };
        for (low, high, expected) in [
            (8000, 9999, [79_995, 99_995]),
            (8000, 10_000, [80_000, 100_000]),
            (9990, 9995, [80_000, 100_000]),
            (0, 100, [0, 20_000]),
            (-500, 500, [-5_000, 15_000]),
            (1000, 9000, [10_000, 90_000]),
            (8500, 8500, [85_000, 85_000]),
        ] {
            let expected = expected.map(|bound| Decimal::new(bound, 3).normalize());
            assert_eq!(scale(low, high), expected, "{low} to {high}");
        }
    }

    #[test]
    fn a_missing_value_is_a_blank() {
        assert_eq!(drawn(0, 8, &[None, Some(0), None, Some(8), None]), " ▁ █");
        assert_eq!(drawn(0, 8, &[]), "");
        assert_eq!(drawn(7, 7, &[Some(7), None, Some(7)]), "▄ ▄");
    }
}
