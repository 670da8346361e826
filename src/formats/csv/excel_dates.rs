//! Dates for Excel: `2026-05-01 06:00:00`, in UTC.
//!
//! Spreadsheets read this form as a date in every language. A fraction of a second needs their decimal separator.

use crate::batch::{Timestamp, canonical_date};

/// The length of `YYYY-MM-DD HH:MM:SS`.
const WHOLE: usize = 19;
const DAY: usize = "YYYY-MM-DD".len();

/// Returns a UTC date as spreadsheets read it, with the digits of its fraction as received; `None` if it is not a UTC
/// date. A leap second, which they do not know, is the second that follows.
pub(super) fn to_excel(text: &str, decimal_comma: bool) -> Option<String> {
    Timestamp::parse(text)?;
    let canonical = canonical_date(text);
    let (day, time) = (canonical.get(..DAY)?, canonical.get(DAY + 1..WHOLE)?);
    let utc = text
        .strip_suffix('Z')
        .or_else(|| text.strip_suffix("+00:00"));
    let fraction = utc?.get(WHOLE..)?;
    let fraction = if decimal_comma {
        fraction.replacen('.', ",", 1)
    } else {
        fraction.to_owned()
    };
    Some(format!("{day} {time}{fraction}"))
}

/// Returns the UTC date that [`to_excel`] wrote; `None` if it is none.
pub(super) fn from_excel(text: &str) -> Option<String> {
    let (whole, fraction) = text.split_at_checked(WHOLE)?;
    let (day, time) = whole.split_at_checked(DAY)?;
    let time = time.strip_prefix(' ')?;
    let fraction = fraction.replacen(',', ".", 1);
    let date = format!("{day}T{time}{fraction}Z");
    Timestamp::parse(&date).map(|_| date)
}

/// Returns whether `text` is a date as [`to_excel`] writes it.
pub(crate) fn is_excel_date(text: &str) -> bool {
    from_excel(text).is_some()
}

/// Returns whether a text that is not a date looks like one for Excel, with any number of apostrophes before it. It gets
/// another apostrophe, so that readers can tell it from a date.
pub(super) fn looks_like_one(text: &str) -> bool {
    is_excel_date(text.trim_start_matches('\''))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_have_a_blank_and_no_zone() {
        for (received, comma, written, read) in [
            (
                "2026-05-01T06:00:00Z",
                false,
                "2026-05-01 06:00:00",
                "2026-05-01T06:00:00Z",
            ),
            (
                "2026-05-01T06:00:00+00:00",
                false,
                "2026-05-01 06:00:00",
                "2026-05-01T06:00:00Z",
            ),
            (
                "2026-05-01T06:00:00.0930Z",
                false,
                "2026-05-01 06:00:00.0930",
                "2026-05-01T06:00:00.0930Z",
            ),
            (
                "2026-05-01T06:00:00.5Z",
                true,
                "2026-05-01 06:00:00,5",
                "2026-05-01T06:00:00.5Z",
            ),
            (
                "2016-12-31T23:59:60.25Z",
                false,
                "2017-01-01 00:00:00.25",
                "2017-01-01T00:00:00.25Z",
            ),
        ] {
            assert_eq!(to_excel(received, comma).as_deref(), Some(written));
            assert_eq!(from_excel(written).as_deref(), Some(read));
            assert_eq!(canonical_date(received), canonical_date(read));
        }
        for text in [
            "",
            "soon",
            "2026-05-01",
            "2026-05-01 06:00:00",
            "2026-05-01T06:00:00+02:00",
        ] {
            assert_eq!(to_excel(text, false), None, "{text}");
        }
        for text in [
            "",
            "2026-05-01T06:00:00Z",
            "2026-05-01 06:00:00Z",
            "2026-05-01 06:00:00.",
            "2026-02-30 06:00:00",
            "2026-05-01 06:00",
            "2026-05-01 06:00:00.5,5",
            "äääääääääääääää",
        ] {
            assert_eq!(from_excel(text), None, "{text}");
        }
    }
}
