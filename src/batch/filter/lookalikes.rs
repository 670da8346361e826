//! Values of `--where` that no batch has, although one has nearly the same: another case, or other blanks.

use super::condition::{Condition, Test};
use super::wanted::Wanted;
use crate::batch::{Batch, COLUMNS};
use crate::secret::brief;

/// How many values of a condition to look for.
const WANTED: usize = 16;

/// The texts that `=` and `!=` name, and what came.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lookalikes(Vec<Lookalike>);

#[derive(Clone, Debug)]
struct Lookalike {
    column: usize,
    wanted: String,
    /// Whether a batch has this value.
    is_found: bool,
    /// A value that differs only in case and blanks.
    other: Option<String>,
}

impl Lookalikes {
    pub(crate) fn new(conditions: &[Condition]) -> Self {
        let texts = conditions.iter().flat_map(|condition| {
            let wanted = match &condition.test {
                Test::AnyOf(wanted) | Test::NoneOf(wanted) => &wanted.written[..],
                _ => &[],
            };
            let texts = wanted
                .iter()
                .take(WANTED)
                .filter_map(|wanted| match wanted {
                    Wanted::Text(text) => Some(text.clone()),
                    _ => None,
                });
            texts.map(|wanted| Lookalike {
                column: condition.column,
                wanted,
                is_found: false,
                other: None,
            })
        });
        Self(texts.collect())
    }

    /// Adds a batch, whether it matches or not.
    #[inline]
    pub(crate) fn add(&mut self, batch: &Batch) {
        for text in self.0.iter_mut().filter(|text| !text.is_found) {
            let Some(value) = batch.typed(text.column) else {
                continue;
            };
            text.is_found = *value == text.wanted;
            if text.other.is_none() && is_alike(&value, &text.wanted) {
                text.other = Some(value.into_owned());
            }
        }
    }

    /// Says which values no batch has, and what came instead.
    pub(crate) fn describe(&self) -> Vec<String> {
        let missing = self.0.iter().filter(|text| !text.is_found);
        let missing = missing.filter_map(|text| {
            let (wanted, other) = (brief(&text.wanted), brief(text.other.as_ref()?));
            let field = COLUMNS[text.column].name;
            Some(format!(
                "no batch has the {field} `{wanted}` of `--where`, but some have `{other}`: comparison is case-sensitive, and spaces count"
            ))
        });
        missing.collect()
    }
}

/// Returns whether two texts differ at most in case and in blanks around them.
fn is_alike(one: &str, other: &str) -> bool {
    let one = one.trim().chars().flat_map(char::to_lowercase);
    one.eq(other.trim().chars().flat_map(char::to_lowercase))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Zone;
    use crate::batch::date::Clock;
    use crate::batch::sample;

    fn described(condition: &str, crops: &[&str]) -> Vec<String> {
        let condition = Condition::parse(condition, &Clock::new(Zone::default()));
        let mut lookalikes = Lookalikes::new(&[condition.expect("a condition")]);
        for crop in crops {
            lookalikes.add(&sample(&[("crop_type", crop)]));
        }
        lookalikes.describe()
    }

    #[test]
    fn a_value_in_another_spelling_is_named() {
        let crops = ["\"Tomato\"", "\"Chicorée\"", "null"];
        for (condition, wanted, other) in [
            ("crop_type!=tomato", "tomato", "Tomato"),
            ("crop_type=Tomato, chicorée", " chicorée", "Chicorée"),
            ("crop_type=Basil,CHICORÉE", "CHICORÉE", "Chicorée"),
        ] {
            let says = format!(
                "no batch has the crop_type `{wanted}` of `--where`, but some have `{other}`: comparison is case-sensitive, and spaces count"
            );
            assert_eq!(described(condition, &crops), [says]);
        }
    }

    #[test]
    fn values_that_came_and_values_unlike_any_are_not_named() {
        let crops = ["\"Tomato\"", "\"tomato\""];
        for condition in [
            "crop_type=Tomato,tomato",
            "crop_type!=Basil",
            "crop_type=",
            "crop_type~TOMATO",
            "number_of_images=12,13",
            "warnings=true",
        ] {
            assert_eq!(described(condition, &crops), [""; 0], "{condition}");
        }
    }
}
