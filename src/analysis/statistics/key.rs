//! The key of a batch: decides which group it belongs to.

use std::cmp::Ordering;

use super::period::{Period, Step};
use crate::batch::{Batch, CROP_TYPE, SCANNED_BY};

/// A criterion to group batches by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    CropType,
    Month,
    Week,
    Day,
    Person,
}

/// The values of a batch for each [`By`].
pub(crate) type Key = Box<[KeyPart]>;

/// The value of a batch for one [`By`]. `None` if absent.
///
/// Times are sorted chronologically, texts by name ignoring case, and absent values last.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum KeyPart {
    Time(Option<Period>),
    Text(Option<Box<str>>),
}

impl By {
    pub(crate) const ALL: [Self; 5] = [
        Self::CropType,
        Self::Month,
        Self::Week,
        Self::Day,
        Self::Person,
    ];

    /// Returns its name on the command line and in files.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::CropType => "crop_type",
            Self::Month => "month",
            Self::Week => "week",
            Self::Day => "day",
            Self::Person => "scanned_by_email",
        }
    }

    /// Returns the length of the periods. `None` if it is not about time.
    pub(crate) fn step(self) -> Option<Step> {
        match self {
            Self::Month => Some(Step::Month),
            Self::Week => Some(Step::Week),
            Self::Day => Some(Step::Day),
            Self::CropType | Self::Person => None,
        }
    }

    /// Returns the value of `batch`, which was created at `second`.
    pub(crate) fn part(self, batch: &Batch, second: Option<i64>) -> KeyPart {
        // An empty name counts as absent.
        let text = |column: usize| {
            let text = batch.typed(column).filter(|text| !text.is_empty());
            KeyPart::Text(text.map(Into::into))
        };
        match self.step() {
            Some(step) => KeyPart::Time(second.map(|second| step.period(second))),
            None if self == Self::CropType => text(CROP_TYPE),
            None => text(SCANNED_BY),
        }
    }
}

impl KeyPart {
    /// Returns its name in files. `None` if absent.
    pub(crate) fn name(&self) -> Option<String> {
        match self {
            Self::Time(period) => period.map(Period::label),
            Self::Text(text) => text.as_deref().map(str::to_owned),
        }
    }
}

impl Ord for KeyPart {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Time(left), Self::Time(right)) => {
                absent_last(left.as_ref(), right.as_ref(), Ord::cmp)
            }
            (Self::Text(left), Self::Text(right)) => {
                absent_last(left.as_deref(), right.as_deref(), by_name)
            }
            (Self::Time(_), Self::Text(_)) => Ordering::Less,
            (Self::Text(_), Self::Time(_)) => Ordering::Greater,
        }
    }
}

impl PartialOrd for KeyPart {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Compares with `compare`, with absent values last.
fn absent_last<T: ?Sized>(
    left: Option<&T>,
    right: Option<&T>,
    compare: impl Fn(&T, &T) -> Ordering,
) -> Ordering {
    match (left, right) {
        (Some(left), Some(right)) => compare(left, right),
        (left, right) => left.is_none().cmp(&right.is_none()),
    }
}

/// Compares names ignoring case, then exactly.
fn by_name(left: &str, right: &str) -> Ordering {
    let lower = |text: &'_ str| {
        text.chars()
            .flat_map(char::to_lowercase)
            .collect::<String>()
    };
    lower(left).cmp(&lower(right)).then_with(|| left.cmp(right))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::COLUMNS;
    use crate::batch::sample as batch;

    fn parts(batch: &Batch) -> [Option<String>; 5] {
        let second = batch.created().map(|created| created.second);
        By::ALL.map(|by| by.part(batch, second).name())
    }

    #[test]
    fn periods_are_in_utc() {
        let batch = batch(&[("batch_creation_date", "\"2026-12-31T23:59:59.999Z\"")]);
        let expected = ["Tomato", "2026-12", "2026-W53", "2026-12-31", "Tomato"];
        assert_eq!(parts(&batch), expected.map(|name| Some(name.to_owned())));
    }

    #[test]
    fn null_is_not_a_name() {
        let null = batch(&[("crop_type", "null"), ("scanned_by_email", "null")]);
        let unknown = batch(&[("crop_type", "\"unknown\""), ("scanned_by_email", "\"\"")]);
        assert_eq!((&parts(&null)[0], &parts(&null)[4]), (&None, &None));
        assert_eq!(parts(&unknown)[0].as_deref(), Some("unknown"));
        assert_eq!(parts(&unknown)[4], None, "an empty name counts as absent");
        assert_ne!(
            By::CropType.part(&null, None),
            By::CropType.part(&unknown, None)
        );
    }

    #[test]
    fn field_names_are_those_of_the_interface() {
        for by in [By::CropType, By::Person] {
            assert!(COLUMNS.iter().any(|column| column.name == by.name()));
        }
    }

    #[test]
    fn names_are_sorted_ignoring_case_and_absent_ones_last() {
        let names = ["apple", "Apple", "", "Zucchini", "Äpfel", "banana"];
        let mut parts: Vec<KeyPart> = names
            .iter()
            .map(|name| KeyPart::Text(Some((*name).into())))
            .collect();
        parts.push(KeyPart::Text(None));
        parts.reverse();
        parts.sort();
        let sorted: Vec<Option<String>> = parts.iter().map(KeyPart::name).collect();
        let expected =
            ["", "Apple", "apple", "banana", "Zucchini", "Äpfel"].map(|name| Some(name.to_owned()));
        assert_eq!(sorted[..6], expected);
        assert_eq!(sorted[6], None);
        let times = [
            Some(Step::Day.period(86_400)),
            Some(Step::Day.period(0)),
            None,
        ]
        .map(KeyPart::Time);
        assert!(times[1] < times[0] && times[0] < times[2]);
    }
}
