//! Finds contradictions and gaps in the data. Nothing is corrected.

use std::collections::{BTreeMap, BTreeSet};

use super::format::hide_emails;
use super::parse::{BatchNumbers, is_percentage};
use crate::analysis::statistics::ExactValue;
use crate::analysis::statistics::value::FRACTION;
use crate::batch::{BATCH_NAME, Batch};
use crate::text::{join, shortened};

/// Returns whether a batch of this crop has an issue, at this time.
type HasIssue = fn(&BatchNumbers, &str, i64) -> bool;

/// What may be wrong with a batch, in the order of the page: the check, and its text for one batch and for several.
const CHECKS: [(HasIssue, &str, &str); 14] = [
    (
        |batch, _, _| {
            let mut rates = [batch.germination_rate, batch.usable_rate]
                .into_iter()
                .flatten();
            rates.any(|rate| !is_percentage(rate))
        },
        "batch has a rate below 0 or above 100 %",
        "batches have a rate below 0 or above 100 %",
    ),
    (
        |batch, _, _| {
            let zero = Some(ExactValue::Hundredths(0));
            is_more(zero, batch.variation) || is_more(zero, batch.size)
        },
        "batch has a coefficient of variation or a seedling size below 0",
        "batches have a coefficient of variation or a seedling size below 0",
    ),
    (
        |batch, _, _| {
            is_more(batch.usable, batch.germinated)
                || is_more(batch.usable_rate, batch.germination_rate)
        },
        "batch has more usable seedlings than germinated ones",
        "batches have more usable seedlings than germinated ones",
    ),
    (
        |batch, _, _| does_not_add_up(batch.cells, batch.germinated, batch.not_germinated),
        "batch has germinated and not germinated seedlings that do not add up to its cells",
        "batches have germinated and not germinated seedlings that do not add up to their cells",
    ),
    (
        |batch, _, _| does_not_add_up(batch.cells, batch.usable, batch.not_usable),
        "batch has usable seedlings and other cells that do not add up to its cells",
        "batches have usable seedlings and other cells that do not add up to their cells",
    ),
    (
        |batch, _, _| is_another_rate(batch.germination_rate, batch.germinated, batch.cells),
        "batch has a germination rate that does not match its germinated seedlings per cell",
        "batches have a germination rate that does not match their germinated seedlings per cell",
    ),
    (
        |batch, _, _| is_another_rate(batch.usable_rate, batch.usable, batch.cells),
        "batch has a usable rate that does not match its usable seedlings per cell",
        "batches have a usable rate that does not match their usable seedlings per cell",
    ),
    (
        |batch, _, _| batch.images == Some(ExactValue::Hundredths(0)) && !batch.is_empty(),
        "batch has measurements but no images",
        "batches have measurements but no images",
    ),
    (
        |batch, _, _| batch.has_beyond,
        "batch has a value with more than 15 digits before the decimal point or 10 after it; it is left out",
        "batches have values with more than 15 digits before the decimal point or 10 after it; these are left out",
    ),
    (
        |batch, _, _| batch.is_partly_empty(),
        "batch is missing some measurements",
        "batches are missing some measurements",
    ),
    (
        |batch, _, _| batch.is_empty(),
        "batch has no measurements at all",
        "batches have no measurements at all",
    ),
    (
        |_, crop, _| crop.is_empty(),
        "batch has no crop",
        "batches have no crop",
    ),
    (
        |batch, _, _| batch.created.is_none(),
        "batch has no valid date and is not in any week or month",
        "batches have no valid date and are not in any week or month",
    ),
    (
        |batch, _, now| batch.created.is_some_and(|created| created > now),
        "batch was created in the future",
        "batches were created in the future",
    ),
];
/// The number of example batches for each issue.
const EXAMPLES: usize = 3;

/// Counts the issues.
pub(super) struct Quality {
    found: [IssueCount; CHECKS.len()],
    now: i64,
    has_emails: bool,
    /// Whether any batch has a value that is not in the figures.
    pub(super) has_beyond: bool,
}

#[derive(Default)]
struct IssueCount {
    count: u64,
    /// The first by name, so that they do not depend on the order of the batches.
    examples: BTreeSet<String>,
}

impl IssueCount {
    fn is_full(&self) -> bool {
        self.examples.len() == EXAMPLES
    }

    /// Returns whether an example with this name is certainly after the last one. Shortening and escaping plain text
    /// never moves it forward.
    fn is_beyond(&self, name: &str) -> bool {
        let is_plain = |byte: u8| matches!(byte, b' '..=b'~') && byte != b'@';
        let last = self.examples.last();
        last.is_some_and(|last| name >= last.as_str()) && name.bytes().all(is_plain)
    }
}

/// An issue found in the data.
pub(super) struct QualityIssue {
    pub(super) count: u64,
    pub(super) words: String,
    pub(super) examples: Vec<String>,
}

impl QualityIssue {
    /// Returns whether there are more than the examples.
    pub(super) fn has_more(&self) -> bool {
        self.count > self.examples.len() as u64
    }
}

impl Quality {
    /// Dates later than `now` are in the future. With `has_emails`, names may contain e-mail addresses.
    pub(super) fn new(now: i64, has_emails: bool) -> Self {
        Self {
            found: Default::default(),
            now,
            has_emails,
            has_beyond: false,
        }
    }

    pub(super) fn check(&mut self, batch: &Batch, crop: &str, numbers: &BatchNumbers) {
        self.has_beyond |= numbers.has_beyond;
        for (index, (check, ..)) in CHECKS.iter().enumerate() {
            if !check(numbers, crop, self.now) {
                continue;
            }
            let found = &mut self.found[index];
            found.count += 1;
            if found.is_full() && found.is_beyond(&batch.typed(BATCH_NAME).unwrap_or_default()) {
                continue;
            }
            let mut name = example(batch);
            if !self.has_emails {
                name = hide_emails(&name);
            }
            let is_first =
                !found.is_full() || found.examples.last().is_some_and(|last| name < *last);
            if is_first {
                found.examples.insert(name);
            }
            if found.examples.len() > EXAMPLES {
                found.examples.pop_last();
            }
        }
    }

    pub(super) fn findings(&self) -> Vec<QualityIssue> {
        let found = self.found.iter().zip(CHECKS);
        found
            .filter(|(found, _)| found.count > 0)
            .map(|(found, (_, one, many))| QualityIssue {
                count: found.count,
                words: if found.count == 1 { one } else { many }.to_owned(),
                examples: found.examples.iter().cloned().collect(),
            })
            .collect()
    }
}

fn is_more(part: Option<ExactValue>, all: Option<ExactValue>) -> bool {
    part.zip(all).is_some_and(|(part, all)| part > all)
}

/// Returns the names of crops that look the same: they differ only in case, blanks or invisible characters.
pub(super) fn similar_crops<'a>(names: impl Iterator<Item = &'a str>) -> Option<QualityIssue> {
    let mut looks: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for name in names.filter(|name| !name.is_empty()) {
        let visible = name.chars().filter(|letter| !is_invisible(*letter));
        let visible: String = visible.collect::<String>().to_lowercase();
        let look = join(visible.split_whitespace(), " ");
        looks.entry(look).or_default().push(name);
    }
    looks.retain(|look, names| names.len() > 1 || look.is_empty());
    let count = looks.values().map(|names| names.len() as u64).sum();
    let mut examples: Vec<String> = looks.into_values().flatten().map(quoted).collect();
    examples.truncate(EXAMPLES);
    let words = match count {
        0 => return None,
        1 => "crop has a name without visible characters",
        _ => {
            "crops have names that differ from another only in case, blanks or invisible characters"
        }
    };
    Some(QualityIssue {
        count,
        words: words.to_owned(),
        examples,
    })
}

/// Returns a name in quotes, with invisible characters as escapes.
fn quoted(name: &str) -> String {
    let shown = |letter: char| match letter {
        hidden if is_invisible(hidden) => hidden.escape_unicode().to_string(),
        letter => letter.to_string(),
    };
    let shown: String = name.chars().map(shown).collect();
    shortened(&format!("\"{shown}\""))
}

/// Returns whether a character has neither a shape nor a width. Accents have a shape.
fn is_invisible(letter: char) -> bool {
    matches!(letter, '\u{ad}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}')
}

/// Returns the name of a batch, or its identifier if it has none.
fn example(batch: &Batch) -> String {
    let name = batch.typed(BATCH_NAME);
    let name = name.filter(|name| !name.is_empty());
    name.map_or_else(|| shortened(&batch.id()), |name| shortened(&name))
}

/// One, in the units of [`ExactValue::units`].
const ONE: i128 = 10_i128.pow(FRACTION);

/// Returns whether the parts differ from the whole by more than rounding explains. Both parts are
/// averages rounded to two digits.
fn does_not_add_up(
    whole: Option<ExactValue>,
    part: Option<ExactValue>,
    rest: Option<ExactValue>,
) -> bool {
    let [Some(whole), Some(part), Some(rest)] =
        [whole, part, rest].map(|value| value.map(ExactValue::units))
    else {
        return false;
    };
    (part + rest - whole).abs() > ONE / 50
}

/// Returns whether the rate differs from the count per cell by more than rounding explains. Both are
/// rounded to two digits.
fn is_another_rate(
    rate: Option<ExactValue>,
    count: Option<ExactValue>,
    cells: Option<ExactValue>,
) -> bool {
    let [Some(rate), Some(count), Some(cells)] =
        [rate, count, cells].map(|value| value.map(ExactValue::units))
    else {
        return false;
    };
    // |rate - 100 count / cells| <= 0.01 + 1 / cells, without dividing.
    let is_another = || {
        let hundredfold = count.checked_mul(100 * ONE)?;
        let difference = rate.checked_mul(cells)?.checked_sub(hundredfold)?;
        let allowed = cells.checked_mul(ONE / 100)?.checked_add(ONE * ONE)?;
        Some(difference.abs() > allowed)
    };
    // Values that are too large for this cannot be right.
    cells <= 0 || is_another().unwrap_or(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_look_the_same_are_found() {
        let found = |names: &[&str]| {
            let issue = similar_crops(names.iter().copied());
            issue.map(|issue| (issue.count, issue.examples.join(" ")))
        };
        assert_eq!(found(&["Tomato", "Leek", "", "Lee k"]), None);
        assert_eq!(
            found(&["Tomato", "Leek", "tomato "]),
            Some((2, r#""Tomato" "tomato ""#.to_owned()))
        );
        assert_eq!(
            found(&["Sweet  pepper", "Sweet pepper", "Sweet\u{200b} pepper"]),
            Some((
                3,
                r#""Sweet  pepper" "Sweet pepper" "Sweet\u{200b} pepper""#.to_owned()
            ))
        );
        assert_eq!(
            found(&["\u{200b}", "Leek"]),
            Some((1, r#""\u{200b}""#.to_owned()))
        );
        // Accents and vowels are not invisible.
        assert_eq!(found(&["पालक", "पुलक", "पलक", "e\u{301}", "e"]), None);
    }

    fn number(text: &str) -> Option<ExactValue> {
        let decimal = (!text.is_empty()).then(|| text.parse().expect(text));
        decimal.map(|decimal| ExactValue::new(decimal).unwrap_or(ExactValue::Other(decimal)))
    }

    #[test]
    fn parts_may_differ_from_the_whole_by_what_rounding_explains() {
        for (whole, part, rest, is_wrong) in [
            ("128", "112.00", "16.00", false),
            ("128", "112.01", "16.01", false),
            ("128", "112.01", "16.02", true),
            ("128", "111.99", "15.99", false),
            ("128", "111.99", "15.98", true),
            ("", "112.00", "99.00", false),
            ("128", "", "99.00", false),
            ("128", "112.00", "", false),
            ("0", "0", "0", false),
        ] {
            let found = does_not_add_up(number(whole), number(part), number(rest));
            assert_eq!(found, is_wrong, "{whole} of {part} and {rest}");
        }
    }

    #[test]
    fn a_rate_may_differ_from_its_count_by_what_rounding_explains() {
        for (rate, count, cells, is_wrong) in [
            ("87.50", "112.00", "128", false),
            ("87.51", "112.00", "128", false),
            ("87.52", "112.00", "128", true),
            // 0.01 + 1 / 128 below, and a hair more.
            ("87.51", "111.99", "128", false),
            ("87.51", "111.98", "128", true),
            // A small tray has coarse rates.
            ("33.33", "2.00", "6", false),
            ("33.66", "2.01", "6", false),
            ("34.00", "2.00", "6", true),
            ("50.00", "0.50", "1", false),
            ("0.00", "0.00", "0", true),
            ("87.50", "112.00", "-1", true),
            ("87.50", "112.00", "", false),
            ("", "112.00", "128", false),
            (
                "99999999999999",
                "9999999999999999",
                "99999999999999999999",
                true,
            ),
        ] {
            let found = is_another_rate(number(rate), number(count), number(cells));
            assert_eq!(found, is_wrong, "{rate} for {count} of {cells}");
        }
    }
}
