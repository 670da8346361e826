//! The fast path: finds the values of a batch that is written exactly as the interface shows it, with all
//! fields in order, no whitespace, and no flaws.
//!
//! This is only a shortcut. Anything unusual (another order, an additional or missing field, whitespace, an
//! escape that needs decoding, a flaw) is left to `serde_json` and `index.rs`. A batch that is accepted here
//! must have the same result there; the tests compare the two.

use crate::batch::{BATCH_ID, COLUMNS, FieldType};

/// Any integer with at most this many digits fits.
const SAFE_DIGITS: usize = 18;

/// Positions of the values, each as start and end.
type Spans = [(u16, u16); COLUMNS.len()];

/// Reads the object at the start of `text`; returns the positions of its values, and its length.
pub(crate) fn object(text: &[u8]) -> Option<(Spans, usize)> {
    let mut spans = Spans::default();
    let mut position = 0;
    // One call per column, so that the compiler knows names, lengths and types.
    macro_rules! columns {
        ($($column:literal)*) => {
            $(position = field::<$column>(text, position, &mut spans)?;)*
            const { assert!([$($column),*].len() == COLUMNS.len()) };
        };
    }
    columns!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17);
    (text.get(position) == Some(&b'}')).then_some((spans, position + 1))
}

/// The text before a value: brace or comma, the name in quotes, and the colon.
struct Opening<const COLUMN: usize>;

impl<const COLUMN: usize> Opening<COLUMN> {
    const LENGTH: usize = COLUMNS[COLUMN].name.len() + 4;
    const BYTES: [u8; 64] = {
        let name = COLUMNS[COLUMN].name.as_bytes();
        let mut bytes = [0; 64];
        bytes[0] = if COLUMN == 0 { b'{' } else { b',' };
        bytes[1] = b'"';
        let mut position = 0;
        while position < name.len() {
            bytes[2 + position] = name[position];
            position += 1;
        }
        bytes[2 + position] = b'"';
        bytes[3 + position] = b':';
        bytes
    };
}

/// Reads the field of `COLUMN` at `position`; returns its end.
#[inline]
fn field<const COLUMN: usize>(text: &[u8], position: usize, spans: &mut Spans) -> Option<usize> {
    let start = position + Opening::<COLUMN>::LENGTH;
    if text.get(position..start)? != &Opening::<COLUMN>::BYTES[..Opening::<COLUMN>::LENGTH] {
        return None;
    }
    let column = &COLUMNS[COLUMN];
    let value = &text[start..];
    let length = if column.nullable && value.starts_with(b"null") {
        4
    } else {
        match column.kind {
            FieldType::Text => string(value)?,
            FieldType::Date => date(value)?,
            FieldType::Integer => integer(value)?,
            FieldType::Decimal => decimal(value)?,
            FieldType::Boolean if value.starts_with(b"true") => 4,
            FieldType::Boolean if value.starts_with(b"false") => 5,
            FieldType::Boolean => return None,
        }
    };
    if COLUMN == BATCH_ID && length == 2 {
        return None;
    }
    // Longer objects are left to the general parser.
    spans[COLUMN] = (start.try_into().ok()?, (start + length).try_into().ok()?);
    Some(start + length)
}

/// Returns the length of the string at the start of `text`, including quotes.
#[inline]
fn string(text: &[u8]) -> Option<usize> {
    let mut position = usize::from(text.first() == Some(&b'"'));
    if position == 0 {
        return None;
    }
    loop {
        position += plain(text.get(position..)?)?;
        match text[position] {
            b'"' => return Some(position + 1),
            b'\\'
                if matches!(
                    text.get(position + 1)?,
                    b'"' | b'\\' | b'/' | b'n' | b'r' | b't'
                ) =>
            {
                position += 2;
            }
            _ => return None,
        }
    }
}

/// The value 1 in each of eight bytes, and the top bit of each.
const ONES: u64 = u64::from_ne_bytes([1; 8]);
const TOPS: u64 = u64::from_ne_bytes([0x80; 8]);

/// Returns the top bit of each of eight bytes that is less than `limit` (at most 128). A match may cause
/// false matches in later bytes; the first one is always correct.
#[inline]
fn below(word: u64, limit: u8) -> u64 {
    word.wrapping_sub(ONES * u64::from(limit)) & !word & TOPS
}

/// Returns the number of bytes before the first quote, backslash or control character.
#[inline]
fn plain(text: &[u8]) -> Option<usize> {
    let mut rest = text;
    while let Some((bytes, more)) = rest.split_first_chunk::<8>() {
        let word = u64::from_le_bytes(*bytes);
        // With this bit flipped, the quote directly follows the control characters.
        let found = below(word ^ (ONES * 2), 0x21) | below(word ^ (ONES * u64::from(b'\\')), 1);
        if found != 0 {
            return Some(text.len() - rest.len() + found.trailing_zeros() as usize / 8);
        }
        rest = more;
    }
    let is_special = |byte: &u8| matches!(byte, b'"' | b'\\' | ..0x20);
    Some(text.len() - rest.len() + rest.iter().position(is_special)?)
}

#[inline]
fn digits(text: &[u8]) -> usize {
    text.iter().take_while(|byte| byte.is_ascii_digit()).count()
}

/// Returns the length of the integer at the start of `text`.
#[inline]
fn integer(text: &[u8]) -> Option<usize> {
    let count = digits(text);
    let is_plain = (1..=SAFE_DIGITS).contains(&count) && (text[0] != b'0' || count == 1);
    // A fraction or an exponent would follow.
    let ends = matches!(text.get(count)?, b',' | b'}');
    (is_plain && ends).then_some(count)
}

/// Returns the length of the decimal number in quotes at the start of `text`.
#[inline]
fn decimal(text: &[u8]) -> Option<usize> {
    if text.first() != Some(&b'"') {
        return None;
    }
    if let Some(length) = text.get(1..9).and_then(short_decimal) {
        return Some(length + 2);
    }
    let mut position = 1 + usize::from(text.get(1) == Some(&b'-'));
    let mut count = digits(text.get(position..)?);
    position += count;
    if count > 0 && text.get(position) == Some(&b'.') {
        count = digits(&text[position + 1..]);
        position += 1 + count;
    }
    (count > 0 && text.get(position) == Some(&b'"')).then_some(position + 1)
}

/// Returns the length of a decimal number that ends with a quote within these eight bytes; `None` if it is
/// longer, invalid, or has no fraction.
#[inline]
fn short_decimal(text: &[u8]) -> Option<usize> {
    let word = u64::from_le_bytes(text.try_into().ok()?);
    let quotes = below(word ^ (ONES * u64::from(b'"')), 1);
    if quotes == 0 {
        return None;
    }
    let length = quotes.trailing_zeros() as usize / 8;
    // Bytes that are not digits; there are no false matches here. Bytes after the quote do not matter.
    let values = word ^ (ONES * u64::from(b'0'));
    let no_digits = (((values & !TOPS) + ONES * (0x7f - 9)) | values) & TOPS;
    let others = no_digits & ((quotes & quotes.wrapping_neg()) - 1);
    let point = others.trailing_zeros() as usize / 8;
    let one_point = others.is_power_of_two() && text.get(point) == Some(&b'.');
    (one_point && 0 < point && point + 1 < length).then_some(length)
}

/// Returns the length of the date in quotes at the start of `text`.
#[inline]
fn date(text: &[u8]) -> Option<usize> {
    let (shape, rest) = text.split_first_chunk::<20>()?;
    let [
        b'"',
        year @ ..,
        b'-',
        _,
        _,
        b'-',
        _,
        _,
        b'T',
        _,
        _,
        b':',
        _,
        _,
        b':',
        _,
        _,
    ] = shape
    else {
        return None;
    };
    let two = |position: usize| {
        let [tens, ones] = [shape[position], shape[position + 1]];
        let both = tens.is_ascii_digit() && ones.is_ascii_digit();
        // A value that is not a number is out of range.
        if both {
            (tens - b'0') * 10 + ones - b'0'
        } else {
            u8::MAX
        }
    };
    let (month, day) = (two(6), two(9));
    // The end of February needs the calendar.
    let is_day = (1..=28).contains(&day)
        || (29..=30).contains(&day) && month != 2
        || day == 31 && has_31_days(month);
    let fits = digits(year) == 4
        && (1..=12).contains(&month)
        && is_day
        && two(12) < 24
        && two(15) < 60
        && two(18) < 60;
    if !fits {
        return None;
    }
    let mut position = 0;
    if rest.first() == Some(&b'.') {
        let count = digits(&rest[1..]);
        position = if count > 0 { 1 + count } else { return None };
    }
    // Leap seconds are left to the general parser.
    let zone = rest.get(position..)?;
    if zone.starts_with(b"Z\"") {
        Some(20 + position + 2)
    } else {
        zone.starts_with(b"+00:00\"").then_some(20 + position + 7)
    }
}

fn has_31_days(month: u8) -> bool {
    matches!(month, 1 | 3 | 5 | 7 | 8 | 10 | 12)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::Batch;
    use crate::batch::Column;
    use proptest::prelude::*;
    use proptest::strategy::ValueTree as _;
    use proptest::test_runner::TestRunner;
    use std::sync::Arc;

    /// Valid values for a column.
    fn right(column: &Column) -> BoxedStrategy<String> {
        let usual = match column.kind {
            FieldType::Text => r#""(x|[a-zé =:,}{\[\]]|\\["\\/nrt]){1,40}""#,
            FieldType::Date => {
                r#""20[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,9})?(Z|\+00:00)""#
            }
            FieldType::Integer => "(0|[1-9][0-9]{0,17})",
            FieldType::Decimal => r#""-?[0-9]{1,12}(\.[0-9]{1,12})?""#,
            FieldType::Boolean => "(true|false)",
        };
        if column.nullable {
            prop_oneof![5 => usual, 1 => Just("null".to_owned())].boxed()
        } else {
            usual.boxed()
        }
    }

    /// Invalid or almost valid values.
    fn near(kind: FieldType) -> BoxedStrategy<String> {
        let near = match kind {
            FieldType::Text => {
                r#""([a-zé]|\\[a-zA-Z0-9"\\/]|\\u[0-9a-d]{3,4}|["\x00-\x20\x7f]){0,12}""#
            }
            FieldType::Date => {
                r#""[0-2][0-9]{3}-[01][0-9]-[0-3][0-9][Tt ][0-2][0-9]:[0-6][0-9]:[0-6][0-9](\.[0-9]{0,4})?(Z|z|[+-]0[01]:?00|)""#
            }
            FieldType::Integer => "-?[0-9]{0,21}(\\.0)?(e1)?",
            FieldType::Decimal => r#""?[+-]?[0-9]{0,4}[.,]?[0-9:]{0,3}[.e]?[0-9]{0,2}"?"#,
            FieldType::Boolean => "(true1|\"true\"|1|null|fals|TRUE)",
        };
        prop_oneof![4 => near, 1 => "(null|nul|\"|\\{\\}|\\[1\\]|\"\"|)"].boxed()
    }

    /// Objects as the interface shows them, with at most one change.
    fn objects() -> impl Strategy<Value = String> {
        let values: Vec<_> = COLUMNS.iter().map(right).collect();
        let others: Vec<_> = COLUMNS.iter().map(|column| near(column.kind)).collect();
        let places = (0..COLUMNS.len(), 0..COLUMNS.len(), 0_usize..900);
        (values, others, places, 0_u8..12, any::<u8>()).prop_map(
            |(mut values, others, (from, to, position), change, byte)| {
                if change < 5 {
                    values[from].clone_from(&others[from]);
                }
                let mut fields: Vec<String> = COLUMNS
                    .iter()
                    .zip(&values)
                    .map(|(column, value)| format!("\"{}\":{value}", column.name))
                    .collect();
                match change {
                    5 => fields.swap(from, to),
                    6 => drop(fields.remove(from)),
                    7 => fields.insert(from, "\"more\":[1]".to_owned()),
                    _ => {}
                }
                let mut text = format!("{{{}}}", fields.join(","));
                match change {
                    8 if text.is_char_boundary(position) => text.insert(position, ' '),
                    9 if text.is_char_boundary(position) => text.insert(position, char::from(byte)),
                    10 if text.is_char_boundary(position) => text.truncate(position),
                    _ => {}
                }
                text
            },
        )
    }

    #[test]
    fn many_of_these_objects_take_the_shortcut() {
        let mut runner = TestRunner::deterministic();
        let objects = objects();
        let taken = (0..500).filter(|_| {
            let object = objects.new_tree(&mut runner).expect("an object");
            agrees(&object.current())
        });
        // Objects without a change, and some whose change has no effect.
        let taken = taken.count();
        assert!((50..300).contains(&taken), "{taken}");
    }

    /// Parses `text` both ways and compares; returns whether the fast path was taken.
    fn agrees(text: &str) -> bool {
        let page = Arc::new(format!("[{text},{text}]"));
        let Some((batch, length)) = Batch::scan(&page, 1) else {
            return false;
        };
        let slow = Batch::read(&page[1..=length]);
        assert_eq!((&slow.flaws[..], slow.absent), (&[][..], 0), "{text}");
        let slow = slow.batch.expect("a batch");
        assert_eq!(batch.text(), slow.text());
        assert_eq!(batch.canonical(), slow.canonical());
        for column in 0..COLUMNS.len() {
            assert_eq!(batch.member(column), slow.member(column), "{text}");
            assert_eq!(batch.typed(column), slow.typed(column), "{text}");
        }
        assert_eq!(slow.unknown().count(), 0, "{text}");
        true
    }

    fn usual() -> String {
        let fields: Vec<String> = COLUMNS
            .iter()
            .map(|column| {
                let value = match column.kind {
                    FieldType::Text => "\"tä\\\"xt\\n\"",
                    FieldType::Date => "\"2026-05-31T06:00:00.250Z\"",
                    FieldType::Integer => "12",
                    FieldType::Decimal => "\"-87.50\"",
                    FieldType::Boolean => "true",
                };
                format!("\"{}\":{value}", column.name)
            })
            .collect();
        format!("{{{}}}", fields.join(","))
    }

    #[test]
    fn what_is_usual_takes_the_shortcut() {
        assert!(agrees(&usual()));
        for date in [
            "2024-12-30T23:59:59Z",
            "2024-12-30T23:59:59+00:00",
            "2024-12-30T23:59:59.123456+00:00",
        ] {
            assert!(agrees(&usual().replace("2026-05-31T06:00:00.250Z", date)));
        }
        let nulls = COLUMNS.iter().filter(|column| column.nullable);
        let text = nulls.fold(usual(), |text, column| {
            let (before, after) = text
                .split_once(&format!("\"{}\":", column.name))
                .expect("a field");
            let end = after.find(",\"").expect("another");
            format!("{before}\"{}\":null{}", column.name, &after[end..])
        });
        assert!(agrees(&text), "{text}");
    }

    #[test]
    fn what_is_unusual_is_handed_back() {
        for (from, to) in [
            ("{\"batch_id\"", "{ \"batch_id\""),
            ("\"tä\\\"xt\\n\",\"batch_name\"", "\"\",\"batch_name\""),
            ("\"batch_name\":\"tä", "\"batch_name\":\"\\u0041"),
            ("\"batch_name\":\"tä", "\"batch_name\":\"\u{1}"),
            ("05-31", "02-29"),
            ("05-31", "06-31"),
            ("05-31", "00-01"),
            ("05-31T06", "05-31T24"),
            ("00.250Z", "00.Z"),
            ("00.250Z", "00.250"),
            ("00.250Z", "00.250+01:00"),
            ("00.250Z", "00.250-00:00"),
            ("06:00:00.250Z", "23:59:60Z"),
            (":12,", ":012,"),
            (":12,", ":12.0,"),
            (":12,", ":-1,"),
            ("\"-87.50\"", "-87.50"),
            ("\"-87.50\"", "\"-87.\""),
            ("\"warnings\":true", "\"warnings\":null"),
            ("true}", "true,\"more\":1}"),
        ] {
            let text = usual().replacen(from, to, 1);
            assert_ne!(text, usual(), "{from}");
            assert!(!agrees(&text), "{to}");
        }
        let long = usual().replacen("tä", &"x".repeat(u16::MAX.into()), 1);
        assert!(!agrees(&long));
    }

    #[test]
    fn every_character_and_every_escape_is_judged_alike() {
        for character in (0..=255).map(char::from) {
            for text in [
                format!("{character}"),
                format!("\\{character}"),
                format!("\\{character}x"),
            ] {
                agrees(&usual().replacen("tä", &text, 1));
                agrees(&usual().replacen("tä", &format!("seven77{text}"), 1));
            }
            for (from, to) in [
                (":12,", format!(":1{character},")),
                ("-87.50", format!("87.5{character}")),
            ] {
                agrees(&usual().replacen(from, &to, 1));
            }
        }
    }

    #[test]
    fn usual_decimals_are_short() {
        for text in ["0.00", "7.5", "87.50", "100.00", "1234.56"] {
            let padded = format!("{text}\",\"avg_us");
            assert_eq!(
                short_decimal(&padded.as_bytes()[..8]),
                Some(text.len()),
                "{text}"
            );
        }
        for text in [
            "12", ".5", "5.", "-1.5", "1.2.3", "1a.5", "12345.67", "1:5.0", "0.0:",
        ] {
            let padded = format!("{text}\",\"avg_us");
            assert_eq!(short_decimal(&padded.as_bytes()[..8]), None, "{text}");
        }
    }

    #[test]
    fn no_part_of_an_object_is_an_object() {
        let text = usual();
        let cut = (0..text.len()).filter_map(|end| text.get(..end));
        for part in cut {
            assert!(object(part.as_bytes()).is_none(), "{part}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]

        #[test]
        fn the_shortcut_agrees_with_the_general_road(text in objects()) {
            agrees(&text);
        }

        #[test]
        fn short_decimals_are_decimals(text in "[0-9.\",:\\-]{0,9}|[0-9]{1,3}\\.[0-9]{1,3}\"[ -~]{0,4}|[ -~é]{8}") {
            let text = format!("{text}\",\"avg");
            if let Some(length) = text.as_bytes().get(..8).and_then(short_decimal) {
                prop_assert!(crate::batch::is_number(&text[..length]), "{}", text);
                prop_assert_eq!(text.as_bytes()[length], b'"');
            }
        }

        #[test]
        fn bytes_before_a_special_one_are_counted(text in "[a-zé\"\\\\\u{0}-\u{21}]{0,40}") {
            let slow = text.bytes().position(|byte| byte < 0x20 || byte == b'"' || byte == b'\\');
            prop_assert_eq!(plain(text.as_bytes()), slow);
        }
    }
}
