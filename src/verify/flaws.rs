//! Counts values that are invalid for their field. They are allowed: `export --lenient` keeps them.

use crate::batch::{COLUMNS, FieldType, Timestamp, is_number, is_whole};
use crate::formats::record::Record;

/// The number of invalid values, and the first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flawed {
    pub(crate) count: u64,
    pub(crate) first: Option<String>,
}

impl Flawed {
    pub(super) fn check(&mut self, record: &Record<'_>) {
        for (place, column) in COLUMNS.iter().enumerate() {
            if record.columns & (1 << place) == 0 {
                continue;
            }
            let text = record.values.plain(place);
            let Some(flaw) = flaw(column.kind, column.nullable, text.as_deref()) else {
                continue;
            };
            self.count += 1;
            self.first
                .get_or_insert_with(|| format!("{}, `{}` is {flaw}", record.place, column.name));
        }
    }
}

/// Describes what is wrong with a value.
fn flaw(kind: FieldType, nullable: bool, text: Option<&str>) -> Option<&'static str> {
    let Some(text) = text.filter(|text| !text.is_empty()) else {
        // In CSV, empty text and null look the same.
        return (!nullable && kind != FieldType::Text).then_some("missing");
    };
    match kind {
        FieldType::Text => None,
        FieldType::Date => Timestamp::parse(text)
            .is_none()
            .then_some("not a date in UTC"),
        FieldType::Integer if text.parse::<i64>().is_ok() => None,
        FieldType::Integer if is_whole(text) => Some("too large"),
        FieldType::Integer => Some("not a whole number"),
        FieldType::Decimal => (!is_number(text)).then_some("not a decimal number"),
        FieldType::Boolean => (!matches!(text, "true" | "false")).then_some("not true or false"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_checked_by_the_type_of_their_field() {
        for (kind, text) in [
            (FieldType::Decimal, "87.50"),
            (FieldType::Integer, "-12"),
            (FieldType::Date, "2026-05-01T06:00:00.5Z"),
            (FieldType::Boolean, "false"),
            (FieldType::Text, "anything"),
        ] {
            assert_eq!(flaw(kind, false, Some(text)), None, "{text}");
            assert_eq!(flaw(kind, true, None), None);
        }
        for (kind, text) in [
            (FieldType::Decimal, "87,50"),
            (FieldType::Integer, "12.0"),
            (FieldType::Date, "2026-05-01"),
            (FieldType::Boolean, "1"),
            (FieldType::Boolean, ""),
        ] {
            assert!(flaw(kind, false, Some(text)).is_some(), "{text}");
        }
        assert_eq!(flaw(FieldType::Date, false, None), Some("missing"));
        assert_eq!(flaw(FieldType::Text, false, None), None);
        let huge = flaw(FieldType::Integer, false, Some("9223372036854775808"));
        assert_eq!(huge, Some("too large"));
    }
}
