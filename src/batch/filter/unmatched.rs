//! What to say if no batch matches `--where`: which values came instead.

use std::cmp::Ordering;
use std::collections::HashSet;

use super::condition::{Condition, Test};
use super::wanted::Wanted;
use crate::batch::{Batch, COLUMNS, FieldType};
use crate::secret::brief;
use crate::text::{count, thousands};

/// How many values to name for each condition.
const NAMED: usize = 3;
/// Longer texts are not compared, in bytes.
const LONGEST: usize = 1024;
/// How many pairs of letters to compare: about a second of work.
const EFFORT: usize = 200_000_000;
/// How many values of a condition to compare only once.
const KNOWN: usize = 256;
/// How many values of a list to look for.
const WANTED: usize = 16;

/// The batches of a run that has not selected any yet, in bounded memory.
#[derive(Clone, Debug)]
pub(crate) struct Unmatched {
    batches: u64,
    results: Vec<ConditionResult>,
    /// How many pairs of letters may still be compared.
    effort: usize,
}

/// One condition: which batches it holds for by itself, and the values nearest to what it asks for.
#[derive(Clone, Debug)]
struct ConditionResult {
    condition: Condition,
    holds: u64,
    nulls: u64,
    nearest: Nearest,
}

#[derive(Clone, Debug)]
enum Nearest {
    /// Texts by their distance from the wanted ones, the nearest first.
    Similar {
        texts: Vec<(Distance, String)>,
        known: HashSet<String>,
    },
    /// For each wanted value, the next ones before and after it.
    Beside(Vec<[Option<String>; 2]>),
    /// The condition does not ask for a value.
    None,
}

/// The number of typing errors, ignoring case and then with it.
type Distance = (usize, usize);

impl Unmatched {
    /// Begins a run; `None` without conditions.
    pub(crate) fn new(conditions: &[Condition]) -> Option<Self> {
        let result = |condition: &Condition| ConditionResult {
            condition: condition.clone(),
            holds: 0,
            nulls: 0,
            nearest: Nearest::new(&condition.test),
        };
        (!conditions.is_empty()).then(|| Self {
            batches: 0,
            results: conditions.iter().map(result).collect(),
            effort: EFFORT,
        })
    }

    /// Adds a batch that does not match all conditions.
    pub(crate) fn add(&mut self, batch: &Batch) {
        self.batches += 1;
        for result in &mut self.results {
            result.add(batch, &mut self.effort);
        }
    }

    /// Says that nothing matches; `None` if no batch came. `written` are the conditions as the user wrote them.
    pub(crate) fn describe(&self, written: &[String]) -> Option<String> {
        let conditions = match written {
            [one] => format!("`--where {}`", brief(one)),
            _ => "all `--where` conditions".to_owned(),
        };
        match self.batches {
            0 => None,
            1 => Some(format!("the only batch does not match {conditions}")),
            many => Some(format!(
                "none of the {} batches matches {conditions}",
                thousands(many)
            )),
        }
    }

    /// Says which values came instead. `written` are the conditions as the user wrote them.
    pub(crate) fn describe_values(&self, written: &[String]) -> Option<String> {
        if let [only] = &self.results[..] {
            return only.describe(self.batches);
        }
        let results = || self.results.iter().zip(written);
        let values: Vec<String> = if self.results.iter().all(|result| result.holds > 0) {
            let alone = |(result, written): (&ConditionResult, &String)| {
                let matches = count(result.holds, "of them matches", "of them match");
                format!("{matches} `{}`", brief(written))
            };
            results().map(alone).collect()
        } else {
            let unmet = results().filter(|(result, _)| result.holds == 0);
            let unmet = unmet.filter_map(|(result, written)| {
                let values = result.describe(self.batches)?;
                Some(format!("none matches `{}`: {values}", brief(written)))
            });
            unmet.collect()
        };
        (!values.is_empty()).then(|| values.join("; "))
    }
}

impl ConditionResult {
    fn add(&mut self, batch: &Batch, effort: &mut usize) {
        if self.condition.holds(batch) {
            self.holds += 1;
        }
        match batch.typed(self.condition.column) {
            // It is no help to name it.
            Some(value) if value.is_empty() => {}
            Some(value) => self.nearest.add(&self.condition.test, &value, effort),
            None => self.nulls += 1,
        }
    }

    /// Says which values came instead of the wanted ones.
    fn describe(&self, batches: u64) -> Option<String> {
        let field = self.condition.field();
        if self.nulls == batches && self.condition.test != Test::IsNull {
            return Some(format!("{field} is always null"));
        }
        let values = match (&self.condition.test, &self.nearest) {
            (Test::IsNull, _) => return Some(format!("{field} is never null")),
            (Test::NoneOf(_), _) => return Some(format!("{field} has no other value")),
            (_, Nearest::Similar { texts, .. }) => {
                // Values that are much farther away than the nearest one are of no use.
                const FARTHER: usize = 2;
                let least = texts.first().map_or(0, |((errors, _), _)| *errors);
                let only_case = least == 0 && matches!(self.condition.test, Test::AnyOf(_));
                let most = if only_case { 0 } else { least + FARTHER };
                let near = texts.iter().filter(|((errors, _), _)| *errors <= most);
                let near: Vec<&String> = near.map(|(_, text)| text).collect();
                if only_case && !near.is_empty() {
                    let near = quoted(&near);
                    return Some(format!(
                        "did you mean {near}? `=` distinguishes upper and lower case, `~` does not"
                    ));
                }
                near
            }
            (_, Nearest::Beside(pairs)) => {
                let mut values: Vec<&String> = pairs.iter().flatten().flatten().collect();
                let mut seen = HashSet::new();
                values.retain(|value| seen.insert(*value));
                values.truncate(NAMED);
                values
            }
            (_, Nearest::None) => return None,
        };
        match values.len() {
            0 => None,
            1 if COLUMNS[self.condition.column].kind == FieldType::Boolean
                && matches!(self.condition.test, Test::AnyOf(_)) =>
            {
                Some(format!("{field} is always {}", quoted(&values)))
            }
            1 => Some(format!(
                "the nearest {field} is {}{}",
                quoted(&values),
                self.decimal_advice()
            )),
            _ => Some(format!(
                "the nearest values of {field} are {}{}",
                quoted(&values),
                self.decimal_advice()
            )),
        }
    }

    /// Says how to write a decimal, if a list looks like one with a comma, such as `80,5`.
    fn decimal_advice(&self) -> String {
        let Test::AnyOf(wanted) = &self.condition.test else {
            return String::new();
        };
        let is_whole = |number: &String| number.bytes().all(|byte| byte.is_ascii_digit());
        match &wanted.written[..] {
            [Wanted::Number(whole), Wanted::Number(fraction)]
                if COLUMNS[self.condition.column].kind == FieldType::Decimal
                    && is_whole(whole)
                    && is_whole(fraction) =>
            {
                format!(" (a comma separates values; a decimal is written {whole}.{fraction})")
            }
            _ => String::new(),
        }
    }
}

fn quoted(values: &[&String]) -> String {
    let values = values.iter().map(|value| format!("`{}`", brief(value)));
    values.collect::<Vec<_>>().join(", ")
}

impl Nearest {
    fn new(test: &Test) -> Self {
        let is_text = |wanted: &[Wanted]| matches!(wanted.first(), Some(Wanted::Text(_)));
        match test {
            Test::AnyOf(wanted) if !is_text(&wanted.written) => {
                Self::Beside(vec![[None, None]; wanted.written.len().min(WANTED)])
            }
            Test::AnyOf(_) | Test::Contains(_) => Self::Similar {
                texts: Vec::new(),
                known: HashSet::new(),
            },
            Test::Ordered(..) => Self::Beside(vec![[None, None]]),
            Test::IsNull | Test::IsNotNull | Test::NoneOf(_) => Self::None,
        }
    }

    fn add(&mut self, test: &Test, value: &str, effort: &mut usize) {
        match self {
            Self::Similar { texts, known } => {
                if value.len() > LONGEST || known.contains(value) || *effort == 0 {
                    return;
                }
                if known.len() < KNOWN {
                    known.insert(value.to_owned());
                }
                // Many batches may have values that are not known, but few are as near as these.
                if texts.iter().any(|(_, text)| text == value) {
                    return;
                }
                let (distance, pairs) = distance(test, value);
                *effort = effort.saturating_sub(pairs);
                let Some(distance) = distance else {
                    return;
                };
                let place = texts.partition_point(|(other, _)| *other <= distance);
                if place < NAMED {
                    texts.insert(place, (distance, value.to_owned()));
                    texts.truncate(NAMED);
                }
            }
            Self::Beside(pairs) => {
                let wanted = match test {
                    Test::AnyOf(wanted) => &wanted.written[..],
                    Test::Ordered(_, wanted) => std::slice::from_ref(wanted),
                    _ => &[],
                };
                for (wanted, [before, after]) in wanted.iter().zip(pairs) {
                    let side = match wanted.order(value) {
                        Some(Ordering::Less | Ordering::Equal) => (before, Ordering::Greater),
                        Some(Ordering::Greater) => (after, Ordering::Less),
                        None => continue,
                    };
                    let (held, nearer) = side;
                    let is_nearer = held
                        .as_deref()
                        .is_none_or(|held| wanted.compare(value, held) == nearer);
                    if is_nearer && value.len() <= LONGEST {
                        *held = Some(value.to_owned());
                    }
                }
            }
            Self::None => {}
        }
    }
}

/// Returns how far `value` is from the nearest text that `test` asks for, and how many pairs of letters were compared.
fn distance(test: &Test, value: &str) -> (Option<Distance>, usize) {
    let lower = value.to_lowercase();
    let mut pairs = 0;
    let distance = match test {
        Test::Contains(part) => {
            pairs += part.len() * lower.len();
            Some((distance_within(part, &lower), 0))
        }
        Test::AnyOf(wanted) => {
            let distance = |wanted: &Wanted| match wanted {
                Wanted::Text(text) if text.len() <= LONGEST => {
                    pairs += 2 * text.len() * value.len();
                    Some((
                        strsim::osa_distance(&text.to_lowercase(), &lower),
                        strsim::osa_distance(text, value),
                    ))
                }
                _ => None,
            };
            let written = wanted.written.iter();
            written.take(WANTED).filter_map(distance).min()
        }
        _ => None,
    };
    (distance, pairs)
}

/// Returns the least number of typing errors between `part` and any part of `text`.
fn distance_within(part: &str, text: &str) -> usize {
    let part: Vec<char> = part.chars().take(LONGEST).collect();
    // The distances between the start of `part`, up to each letter, and the text that ends at this letter.
    let mut row: Vec<usize> = (0..=part.len()).collect();
    let mut least = part.len();
    for letter in text.chars() {
        let mut diagonal = 0;
        for (place, wanted) in part.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *wanted);
            diagonal = row[place + 1];
            row[place + 1] = changed.min(diagonal + 1).min(row[place] + 1);
        }
        least = least.min(row[part.len()]);
    }
    least
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Zone;
    use crate::batch::date::Clock;
    use crate::batch::sample;

    /// Says what came instead, if `field` had these values in JSON.
    fn told(written: &[&str], field: &str, values: &[&str]) -> String {
        let conditions: Vec<Condition> = written
            .iter()
            .map(|text| Condition::parse(text, &Clock::new(Zone::UTC)).expect(text))
            .collect();
        let mut unmatched = Unmatched::new(&conditions).expect("conditions");
        for value in values {
            unmatched.add(&sample(&[(field, value)]));
        }
        let written: Vec<String> = written.iter().map(ToString::to_string).collect();
        let Some(none) = unmatched.describe(&written) else {
            return String::new();
        };
        let values = unmatched.describe_values(&written);
        format!("{none}; {}", values.unwrap_or_default())
    }

    /// A condition, the values that its field had, and what is told.
    const NEAREST: [(&str, &str, &str); 19] = [
        (
            "crop_type=tomato",
            CROPS,
            "did you mean `Tomato`? `=` distinguishes upper and lower case, `~` does not",
        ),
        (
            "crop_type=leek,TOMATO",
            CROPS,
            "did you mean `Leek`, `Tomato`? `=` distinguishes upper and lower case, `~` does not",
        ),
        ("crop_type=Leak", CROPS, "the nearest crop_type is `Leek`"),
        (
            "crop_type=Nix",
            "\"\" \"Leek\"",
            "the nearest crop_type is `Leek`",
        ),
        (
            "crop_type=Tomatoe",
            CROPS,
            "the nearest values of crop_type are `Tomato`, `Potato`",
        ),
        (
            "crop_type~tomtao",
            CROPS,
            "the nearest values of crop_type are `Tomato`, `Potato`",
        ),
        ("crop_type>X", CROPS, "the nearest crop_type is `Tomato`"),
        (
            "avg_germination_rate=10",
            RATES,
            "the nearest values of avg_germination_rate are `9.50`, `87.50`",
        ),
        (
            "avg_germination_rate=80,5",
            RATES,
            "the nearest values of avg_germination_rate are `9.50`, `87.50` (a comma separates values; a decimal is written 80.5)",
        ),
        (
            "avg_germination_rate=80.5,5",
            RATES,
            "the nearest values of avg_germination_rate are `9.50`, `87.50`",
        ),
        (
            "number_of_images=80,5",
            "1 2",
            "the nearest number_of_images is `2`",
        ),
        (
            "avg_germination_rate>90",
            RATES,
            "the nearest avg_germination_rate is `87.50`",
        ),
        (
            "batch_creation_date=2026-05-02",
            DATES,
            "the nearest values of batch_creation_date are `2026-05-01T06:00:00Z`, `2026-05-03T06:00:00Z`",
        ),
        (
            "crop_type=",
            "\"Tomato\" \"Leek\"",
            "crop_type is never null",
        ),
        (
            "crop_type!=Tomato",
            "\"Tomato\"",
            "crop_type has no other value",
        ),
        ("crop_type!=", "null", "crop_type is always null"),
        ("crop_type~x", "null", "crop_type is always null"),
        ("warnings", "false", "warnings is always `false`"),
        ("warnings>true", "true", "the nearest warnings is `true`"),
    ];
    const CROPS: &str = "\"Tomato\" \"Leek\" null \"Potato\" \"Tomato\"";
    const RATES: &str = "\"9.50\" \"87.50\" null";
    const DATES: &str = "\"2026-05-01T06:00:00Z\" \"2026-05-03T06:00:00Z\"";

    #[test]
    fn the_nearest_values_are_named() {
        for (condition, values, detail) in NEAREST {
            let field = condition.split(['=', '!', '~', '>']).next();
            let values: Vec<&str> = values.split(' ').collect();
            let told = told(&[condition], field.unwrap_or_default(), &values);
            let none = match values.len() {
                1 => "the only batch does not match".to_owned(),
                many => format!("none of the {many} batches matches"),
            };
            let expected = format!("{none} `--where {condition}`; {detail}");
            assert_eq!(told, expected);
        }
        assert_eq!(told(&["crop_type=x"], "crop_type", &[]), "");
    }

    #[test]
    fn conditions_that_only_exclude_each_other_are_told_apart() {
        let values = ["\"Tomato\"", "\"Leek\"", "\"Leek\""];
        assert_eq!(
            told(
                &["crop_type=Leek", "crop_type=tomato"],
                "crop_type",
                &values
            ),
            "none of the 3 batches matches all `--where` conditions; none matches `crop_type=tomato`: did you mean \
             `Tomato`? `=` distinguishes upper and lower case, `~` does not"
        );
        assert_eq!(
            told(
                &["crop_type=Leek", "crop_type=Tomato"],
                "crop_type",
                &values
            ),
            "none of the 3 batches matches all `--where` conditions; 2 of them match `crop_type=Leek`; 1 of \
             them matches `crop_type=Tomato`"
        );
    }

    #[test]
    fn the_conditions_share_the_effort() {
        let parse = |text| Condition::parse(text, &Clock::new(Zone::UTC)).expect("a condition");
        let conditions = ["crop_type=Leak", "batch_name=Tray"].map(parse);
        let mut unmatched = Unmatched::new(&conditions).expect("conditions");
        unmatched.effort = 1;
        unmatched.add(&sample(&[
            ("crop_type", "\"Leek\""),
            ("batch_name", "\"tray\""),
        ]));
        let told = conditions.map(|condition| condition.field().to_owned());
        let told = unmatched.describe_values(&told);
        let expected = "none matches `crop_type`: the nearest crop_type is `Leek`";
        assert_eq!(told.as_deref(), Some(expected));
    }

    #[test]
    fn many_values_take_little_memory() {
        let clock = Clock::new(Zone::UTC);
        let condition = Condition::parse("batch_name=Tray 77777", &clock).expect("a condition");
        let mut unmatched = Unmatched::new(&[condition]).expect("a condition");
        for number in 0..5000 {
            unmatched.add(&sample(&[("batch_name", &format!("\"tray {number}\""))]));
        }
        let long = format!("\"{}\"", "x".repeat(2 * LONGEST));
        unmatched.add(&sample(&[("batch_name", &long)]));
        let Nearest::Similar { texts, known, .. } = &unmatched.results[0].nearest else {
            panic!("a text");
        };
        assert_eq!((texts.len(), known.len()), (NAMED, KNOWN));
        // It came after the known ones.
        assert_eq!(texts[0], ((2, 3), "tray 777".to_owned()));
    }
}
