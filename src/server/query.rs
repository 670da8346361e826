//! Reads the query parameters of a request.

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
}
