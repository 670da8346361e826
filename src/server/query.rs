//! The query of a request, parameter by parameter.

use percent_encoding::percent_decode_str;

use super::answer::Invalid;

/// Returns the value of `name` in `query`, percent-decoded; `None` where it is not given.
///
/// A plus sign stands for itself, as in any URI: the offset `+00:00` must survive unescaped. What
/// parameters the interface does not know is not looked at.
pub(super) fn parameter(query: &str, name: &'static str) -> Result<Option<String>, Invalid> {
    let loc = ["query", name];
    let mut values = values(query, name);
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(Invalid::doubled(loc));
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

/// Tells whether `query` has `name` at all, whatever its value.
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
    fn doubled_empty_and_broken_values_are_refused() {
        assert_eq!(find("end_date=1&end_date=1"), Err("doubled"));
        assert_eq!(find("end_date="), Err("string_too_short"));
        assert_eq!(find("end_date"), Err("string_too_short"));
        assert_eq!(find("end_date=%ff"), Err("string_unicode"));
    }
}
