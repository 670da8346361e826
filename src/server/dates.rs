//! Date formats: of requests (interface, section 2), and of HTTP headers.

use chrono::{DateTime, NaiveDate, Utc};
use hyper::header::HeaderValue;

use super::response::Invalid;

/// Reads `YYYY-MM-DDTHH:MM:SS` followed by `Z` or `+00:00`, as seconds since 1970.
pub(super) fn parse(text: &str, loc: [&'static str; 2]) -> Result<i64, Invalid> {
    let invalid = Invalid::new(
        "datetime_parsing",
        loc,
        "Input should be a valid UTC datetime in the form YYYY-MM-DDTHH:MM:SSZ",
    );
    let Some((moment, zone)) = text.split_at_checked("YYYY-MM-DDTHH:MM:SS".len()) else {
        return Err(invalid);
    };
    let Some(seconds) = seconds(moment.as_bytes()) else {
        return Err(invalid);
    };
    match zone {
        "Z" | "+00:00" => Ok(seconds),
        "" => Err(Invalid::new(
            "timezone_aware",
            loc,
            "Input should have timezone info: it must end with Z or +00:00",
        )),
        _ => Err(invalid),
    }
}

/// Formats `moment` for the `Date` header (RFC 9110, section 5.6.7).
pub(super) fn header(moment: DateTime<Utc>) -> HeaderValue {
    let text = moment.format("%a, %d %b %Y %H:%M:%S GMT").to_string();
    HeaderValue::from_str(&text).expect("a date is plain text")
}

/// Reads the part before the zone. `None` if the format is wrong or the date or time does not exist.
pub(super) fn seconds(text: &[u8]) -> Option<i64> {
    let number = |index: std::ops::Range<usize>| {
        text[index].iter().try_fold(0, |number, &digit| {
            digit
                .is_ascii_digit()
                .then(|| number * 10 + u32::from(digit - b'0'))
        })
    };
    let separators = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    if separators
        .iter()
        .any(|&(index, separator)| text[index] != separator)
    {
        return None;
    }
    let year = i32::try_from(number(0..4)?).ok()?;
    let day = NaiveDate::from_ymd_opt(year, number(5..7)?, number(8..10)?)?;
    let moment = day.and_hms_opt(number(11..13)?, number(14..16)?, number(17..19)?)?;
    Some(moment.and_utc().timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<i64, &'static str> {
        parse(text, ["query", "start_date"]).map_err(|invalid| invalid.kind)
    }

    #[test]
    fn the_documented_form_is_read_in_both_zones() {
        assert_eq!(read("1970-01-01T00:01:40Z"), Ok(100));
        assert_eq!(
            read("2026-05-01T06:00:00+00:00"),
            read("2026-05-01T06:00:00Z")
        );
        assert_eq!(read("2024-02-29T23:59:59Z"), Ok(1_709_251_199));
    }

    #[test]
    fn headers_use_the_http_date_format() {
        let moment = DateTime::from_timestamp(1_709_251_199, 999_999_999).expect("a moment");
        assert_eq!(header(moment), "Thu, 29 Feb 2024 23:59:59 GMT");
    }

    #[test]
    fn a_datetime_without_a_zone_has_its_own_error() {
        assert_eq!(read("2026-05-01T06:00:00"), Err("timezone_aware"));
    }

    #[test]
    fn everything_else_is_not_a_datetime() {
        for text in [
            "",
            "2026-05-01",
            "2026-05-01 06:00:00Z",
            "2026-05-01T06:00:00z",
            "2026-05-01t06:00:00Z",
            "2026-05-01T06:00Z",
            "2026-05-01T06:00:00.5Z",
            "2026-05-01T06:00:00+02:00",
            "2026-05-01T06:00:00-00:00",
            "2026-05-01T06:00:00 00:00",
            "2026-05-01T06:00:00ZZ",
            "2026-02-29T06:00:00Z",
            "2026-13-01T06:00:00Z",
            "2026-05-01T24:00:00Z",
            "2026-05-01T06:00:60Z",
            "+026-05-01T06:00:00Z",
            "２026-05-01T06:00:00Z",
            "yesterday",
        ] {
            assert_eq!(read(text), Err("datetime_parsing"), "{text}");
        }
    }
}
