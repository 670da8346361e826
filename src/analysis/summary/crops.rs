//! Computes the figures of each crop for a workbook, while its batches are written.
//!
//! Memory depends on the number of crops and of distinct values, both limited, and not on the number of batches.

use std::borrow::Cow;

use xxhash_rust::xxh3::xxh3_64;

use crate::analysis::judgement::{
    CropJudgement, History, LEAST_CHANGE, MIN_BATCHES, NewestStep, Verdict,
};
use crate::analysis::statistics::{Decimal, Figures, KeyPart, Measurements, Step, two_digits};
use crate::analysis::{KnownSpan, Targets};
use crate::batch::{Batch, COLUMNS, CROP_TYPE, FieldType, Timestamp, Values, Zone, is_number};
use crate::formats::{CropName, CropRow, CropSummary};
use crate::text::{one_line, visible};

/// The maximum number of crops to list. Others share one row.
const MAX_CROPS: usize = 1000;
/// The maximum number of characters of a name.
const MAX_NAME: usize = 80;

/// The batches of each crop, received in any order.
pub(crate) struct CropFigures {
    history: History,
    /// Batches of crops beyond the limit.
    others: Figures,
    limit: usize,
    span: KnownSpan,
}

impl CropFigures {
    pub(crate) fn new(span: KnownSpan) -> Self {
        Self {
            history: History::recent(Step::Week, span.made()),
            others: Figures::default(),
            limit: MAX_CROPS,
            span,
        }
    }

    pub(crate) fn add(&mut self, batch: &Batch) {
        let name = batch.plain(CROP_TYPE).unwrap_or_default();
        self.add_measured(&name, &Measurements::of(batch));
    }

    /// Adds a batch of a file.
    pub(crate) fn add_values(&mut self, values: &dyn Values) {
        let typed = |column: usize| {
            let text = values.plain(column)?;
            (COLUMNS[column].kind != FieldType::Decimal || is_number(&text)).then_some(text)
        };
        let name = values.plain(CROP_TYPE).unwrap_or_default();
        self.add_measured(&name, &Measurements::read(typed));
    }

    fn add_measured(&mut self, name: &str, measurements: &Measurements) {
        let created = measurements.created.as_ref();
        let created = created.map(|created| self.span.zone.local(created.second));
        let name = distinct_name(name);
        let crops = &self.history.crops;
        // Batches without a crop have an empty name, and always their own row.
        let is_full = crops.len() >= self.limit && !name.is_empty();
        if is_full && !crops.contains_key(name.as_ref()) {
            self.others.take(measurements);
            return;
        }
        // The number of groups is limited here.
        let _ = self.history.add(&name, created, measurements);
    }

    pub(crate) fn finish(self) -> CropSummary {
        let (targets, zone) = (Targets::default(), &self.span.zone);
        let newest = self.history.judge(&targets);
        let mut total = Figures::default();
        let mut rows: Vec<(KeyPart, CropRow)> = Vec::new();
        let mut add = |name: &str, figures: &Figures, judged: Option<&CropJudgement<'_>>| {
            total.merge(figures);
            let key = Some(name).filter(|name| !name.is_empty());
            let row = CropRow {
                name: key.map_or(CropName::Absent, |name| {
                    CropName::Named(one_line(&visible(name)).into_owned())
                }),
                ..row(figures, judged, zone)
            };
            rows.push((KeyPart::Text(key.map(Into::into)), row));
        };
        match &newest {
            Some(newest) => {
                for crop in &newest.crops {
                    add(crop.name, crop.history.total(), Some(crop));
                }
            }
            None => {
                for (name, crop) in &self.history.crops {
                    add(name, crop.total(), None);
                }
            }
        }
        rows.sort_by(|(left, _), (right, _)| left.cmp(right));
        let mut crops: Vec<CropRow> = rows.into_iter().map(|(_, row)| row).collect();
        let listed = crops.len();
        if self.others.batches > 0 {
            total.merge(&self.others);
            crops.push(CropRow {
                name: CropName::Others,
                ..row(&self.others, None, zone)
            });
        }
        let mut notes = notes(&total, newest.as_ref(), &self.span);
        if listed < crops.len() {
            notes.push(format!(
                "There are too many crops for one table: the first {listed} that arrived are listed, and all others share a row."
            ));
        }
        CropSummary {
            total: row(&total, None, zone),
            crops,
            notes,
            zone: zone.name(),
            bounds: self.span.bounds(),
        }
    }
}

/// Returns a name of limited length. Long names stay different from each other.
fn distinct_name(name: &str) -> Cow<'_, str> {
    if name.len() <= MAX_NAME || name.chars().nth(MAX_NAME).is_none() {
        return Cow::Borrowed(name);
    }
    let start: String = name.chars().take(MAX_NAME).collect();
    Cow::Owned(format!("{start}… #{:016x}", xxh3_64(name.as_bytes())))
}

fn row(figures: &Figures, judged: Option<&CropJudgement<'_>>, zone: &Zone) -> CropRow {
    let usable = figures.usable_rate.distribution.quartiles();
    let [usable_rate_low, usable_rate, usable_rate_high] =
        [0, 1, 2].map(|index| rounded(usable.map(|quartiles| quartiles[index])));
    let [germination_rate, coefficient_of_variation, seedling_size] = [
        &figures.germination_rate,
        &figures.coefficient_of_variation,
        &figures.seedling_size,
    ]
    .map(|metric| rounded(metric.distribution.median()));
    let date = |moment: &Option<Timestamp>| Some(day(zone.local(moment.as_ref()?.second)));
    CropRow {
        name: CropName::Absent,
        batches: figures.batches,
        usable_rate,
        usable_rate_low,
        usable_rate_high,
        germination_rate,
        gap: rounded(figures.gap()),
        coefficient_of_variation,
        seedling_size,
        warnings: figures.warnings,
        first: date(&figures.first),
        last: date(&figures.last),
        newest_usable_rate: rounded(judged.and_then(|crop| crop.comparison.newest)),
        change: rounded(judged.and_then(|crop| crop.comparison.change)),
        verdict: judged.map_or("", verdict),
    }
}

fn verdict(crop: &CropJudgement<'_>) -> &'static str {
    match crop.comparison.verdict {
        Verdict::Down => "down",
        Verdict::Up => "up",
        Verdict::Usual => "usual",
        Verdict::TooFew if crop.newest.is_none() => "no batches",
        Verdict::TooFew => "too few",
    }
}

/// Rounds once, to two digits.
fn rounded(number: Option<Decimal>) -> Option<f64> {
    number.and_then(|number| two_digits(number).parse().ok())
}

/// Returns the day of a local time, such as `2026-05-01`.
fn day(second: i64) -> String {
    Step::Day.period(second).label()
}

fn notes(total: &Figures, newest: Option<&NewestStep<'_>>, span: &KnownSpan) -> Vec<String> {
    let mut notes = vec![
        "Medians and quartiles of the batches in this workbook, each batch counted equally, rounded to two digits. Rates are in % of the cells of a tray, the gap is in points.".to_owned(),
    ];
    // Not with a comma for thousands: `verify` compares this text with that in older files.
    let one_or_many = if total.batches == 1 {
        "batch"
    } else {
        "batches"
    };
    let batches = format!("{} {one_or_many}", total.batches);
    let zone_name = span.zone.name();
    let local = |moment: &Timestamp| day(span.zone.local(moment.second));
    let dates = total.first.as_ref().zip(total.last.as_ref());
    notes.push(match dates {
        Some((first, last)) => format!(
            "{batches}, scanned from {} to {} ({zone_name}).",
            local(first),
            local(last)
        ),
        None => format!("{batches}."),
    });
    if let Some(newest) = newest {
        let week = newest.period;
        let share = span.share(week);
        let share = share.map_or_else(String::new, |share| format!(", {share}"));
        notes.push(format!(
            "Newest week: {}, {} to {}{share} ({zone_name}). Change: its median usable rate compared with that of the previous four weeks, in points.",
            week.label(),
            day(week.first()),
            day(week.next().first() - 1),
        ));
        notes.extend(newest.cut(span.start(), "weeks"));
        notes.push(format!(
            "Verdict: down or up from {LEAST_CHANGE} points and 3 standard errors; too few: fewer than {MIN_BATCHES} batches in the newest week or in the four before."
        ));
    }
    notes
}

#[cfg(test)]
mod tests;
