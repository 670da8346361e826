//! Reads the query parameters of a request, and dates.

use chrono::NaiveDate;
use percent_encoding::percent_decode_str;

use super::response::Invalid;

/// Returns the value of `name` in `query`, percent-decoded. `None` if absent.
///
/// A plus sign is not decoded as a space, so that the offset `+00:00` works unescaped. Parameters that
/// are not in the interface are ignored.
pub(super) fn parameter(query: &str, name: &'static str) -> Result<Option<String>, Invalid> {
    let loc = ["query", name];
    let mut values = values(query, name);
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(Invalid::duplicate(loc));
    }
    let Ok(value) = percent_decode_str(value).decode_utf8() else {
        return Err(Invalid::new(
            "string_unicode",
            loc,
            "Input should be UTF-8 text",
        ));
    };
    if value.is_empty() {
        return Err(Invalid::empty(loc));
    }
    Ok(Some(value.into_owned()))
}

/// Returns whether `query` contains `name`, with any value.
pub(super) fn has(query: &str, name: &'static str) -> bool {
    values(query, name).next().is_some()
}

fn values<'a>(query: &'a str, name: &'static str) -> impl Iterator<Item = &'a str> {
    let pairs = query
        .split('&')
        .map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    pairs
        .filter(move |(key, _)| percent_decode_str(key).eq(name.bytes()))
        .map(|(_, value)| value)
}

/// Reads `YYYY-MM-DDTHH:MM:SS` followed by `Z` or `+00:00`, as seconds since 1970.
pub(super) fn parse_date(text: &str, loc: [&'static str; 2]) -> Result<i64, Invalid> {
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

    fn find(query: &str) -> Result<Option<String>, &'static str> {
        parameter(query, "end_date").map_err(|invalid| invalid.kind)
    }

    #[test]
    fn a_value_is_found_and_decoded() {
        assert_eq!(find("a=1&end_date=x%2By&b"), Ok(Some("x+y".into())));
        assert_eq!(find("end_date=x+y"), Ok(Some("x+y".into())));
        assert_eq!(find("end%5Fdate=x=y"), Ok(Some("x=y".into())));
        assert_eq!(find(""), Ok(None));
        assert_eq!(find("xend_date=1&end_dat=2"), Ok(None));
    }

    #[test]
    fn duplicate_empty_and_invalid_values_are_refused() {
        assert_eq!(find("end_date=1&end_date=1"), Err("doubled"));
        assert_eq!(find("end_date="), Err("string_too_short"));
        assert_eq!(find("end_date"), Err("string_too_short"));
        assert_eq!(find("end_date=%ff"), Err("string_unicode"));
    }

    fn read(text: &str) -> Result<i64, &'static str> {
        parse_date(text, ["query", "start_date"]).map_err(|invalid| invalid.kind)
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
