//! Finds the secrets in an address that is given as an argument. One with a typing error is quoted in messages, and the
//! parser of its kind does not know which part of it is the password.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

/// Endings of the names of secret parameters, in lower case.
const SECRET_ENDINGS: [&str; 7] = [
    "password",
    "passwd",
    "pwd",
    "secret",
    "token",
    "signature",
    "key",
];

/// What separates the parts of an address. A password may contain any of these by mistake.
const SEPARATORS: [char; 7] = ['?', '&', '#', ';', '/', ' ', '@'];

/// Returns what may be secret in `text`, as written and decoded. Empty if it does not look like an address.
pub(super) fn secrets(text: &str) -> Vec<Cow<'_, str>> {
    let lower = text.to_ascii_lowercase();
    let start = lower.trim_start_matches(['\'', '"', ' ']);
    let is_address = lower.contains("://") || start.starts_with("postgres");
    let mut found = if is_address {
        parameters(text, is_secret_name)
    } else {
        // A list of settings, such as `host=db password=…`.
        let is_known = |name: &str| {
            let endings = ["password", "passwd", "pwd"];
            endings.iter().any(|ending| name.ends_with(ending)) || name == "accountkey"
        };
        parameters(text, is_known)
    };
    // One character of `://` may be missing.
    if is_address || lower.contains(":/") || lower.contains("//") {
        found.extend(passwords(text));
    }
    // A word that is also the name of something, such as the user, must stay readable.
    let is_same = |one: &str, other: &str| one.eq_ignore_ascii_case(other);
    let is_name = |secret: &str| {
        let parts = text
            .split(SEPARATORS)
            .flat_map(|part| part.split([':', '=']));
        let places = found.iter().filter(|other| is_same(other, secret));
        parts.filter(|part| is_same(part, secret)).count() > places.count()
    };
    let secrets = found
        .iter()
        .filter(|secret| !secret.is_empty() && !is_name(secret));
    let forms = secrets.map(|secret| {
        let decoded = percent_decode_str(secret).decode_utf8_lossy();
        [Cow::Borrowed(*secret), decoded]
    });
    forms.flatten().collect()
}

fn is_secret_name(name: &str) -> bool {
    name == "sig" || SECRET_ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// Returns the password in `scheme://user:password@host`, with any number of slashes. If it contains a character that
/// ends the host, its parts are returned as well.
fn passwords(text: &str) -> Vec<&str> {
    let Some(end) = [":", "//"].iter().filter_map(|mark| text.find(mark)).min() else {
        return Vec::new();
    };
    let rest = &text[end..];
    let rest = rest
        .strip_prefix(':')
        .unwrap_or(rest)
        .trim_start_matches('/');
    let host = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    // An IPv6 address contains colons.
    let brackets = rest.starts_with('[').then(|| rest.find(']')).flatten();
    let colon = rest
        .bytes()
        .skip(brackets.unwrap_or(0))
        .position(|byte| byte == b':');
    let Some(colon) = colon
        .map(|colon| colon + brackets.unwrap_or(0))
        .filter(|colon| *colon < host)
    else {
        return Vec::new();
    };
    let (user, after) = (&rest[..colon], &rest[colon + 1..]);
    if user.contains(char::is_whitespace) {
        return Vec::new();
    }
    if let Some(end) = rest[..host].rfind('@') {
        let password = rest.get(user.len() + 1..end);
        return password.into_iter().collect();
    }
    let port = &rest[user.len() + 1..host];
    let is_port = port.bytes().all(|byte| byte.is_ascii_digit());
    match after.rsplit_once('@').filter(|_| !is_port) {
        Some((password, _)) => std::iter::once(password)
            .chain(password.split(SEPARATORS))
            .collect(),
        None => Vec::new(),
    }
}

/// Returns the values of secret parameters. What follows one and is no parameter itself may belong to the value.
fn parameters(text: &str, is_secret_name: impl Fn(&str) -> bool) -> Vec<&str> {
    let mut found = Vec::new();
    let mut is_secret = false;
    for part in text.split(SEPARATORS) {
        let parameter = part.split_once(['=', ':']);
        if let Some((name, value)) = parameter.filter(|(name, _)| !name.is_empty()) {
            is_secret = is_secret_name(&name.to_ascii_lowercase());
            found.extend(is_secret.then_some(value));
        } else if !is_secret && is_secret_name(&part.to_ascii_lowercase()) {
            // A blank may follow the name.
            is_secret = true;
        } else {
            let value = parameter.map_or(part, |(_, value)| value);
            found.extend(is_secret.then_some(value));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_found_in_addresses_with_mistakes() {
        for address in [
            "postgres://u:hunter2x@h/t",
            "postgres://u:x?hunter2x@h/t",
            "postgres://u:hunter2x/x@h/t",
            "postgres:/u:hunter2x@h/t",
            "postgres:u:hunter2x@h/t",
            "postgres//u:hunter2x@h/t",
            "postgres://u:hunter2x@[::1]:5432/t",
            "postgers://u:hunter2x@hunter2x.example/t",
            "s3:/AK:hunter2x@bucket/k.csv",
            "https:/u:hunter2x@h/t",
            "host=h passwd=hunter2x",
            " postgres://u:hunter2x@h/t",
            "'postgres://u:hunter2x@h/t'",
            "--output=postgresql+psycopg2://u:hunter2x@h/t",
            "pg://u:hunter2x@h",
            "jdbc:postgresql://h/t?user=u&password=hunter2x",
            "postgres://h/t?password:hunter2x",
            "postgres://h/t?password=a&hunter2x",
            "postgres://h/t?password=hunter2x&sslmode=require",
            "postgres://h/t&password=hunter2x",
            "postgres://h/t;password=hunter2x",
            "host=h password=hunter2x dbname=t",
            "s3://AK:hunter2x@bucket/k.csv",
            "https://a.blob.core.windows.net/c/k.csv?sv=1&sig=hunter2x",
            "az://c/k.csv?sig=hunter2x",
            "s3://b/k.csv?X-Amz-Signature=hunter2x",
            "postgres://u:%68unter2x@h/t",
            "postgres:/u:hunter2x@h/t?password=hunter2x",
            "host=h password = hunter2x dbname=t",
            "postgres:/u@h/t?sslpassword=hunter2x",
            "https://h/t.csv?access_token=hunter2x",
            "s3://bucket/k.csv?secret_access_key=hunter2x",
            "DefaultEndpointsProtocol=https;AccountName=x;AccountKey=hunter2x;EndpointSuffix=y",
        ] {
            assert!(
                secrets(address).contains(&Cow::Borrowed("hunter2x")),
                "{address}"
            );
        }
    }

    #[test]
    fn names_stay_readable() {
        for text in [
            "export",
            "batches.csv",
            "scanned_by_email=a@b.example",
            "--where=comment~a: b@c",
            "postgres://postgres:postgres@h/postgres",
            "postgres://scan:Tomato@127.0.0.1:9710/tomato?table=b2&application_name=me@farm",
            "postgres://[::1]:9710/tomato?user=scan@myserver&table=batches",
            "postgres://[::1]/tomato?user=scan@myserver&table=a:b",
            "lake//key=value/batches.csv",
            "postgres://127.0.0.1:9710/tomato?user=scan@myserver&table=batches",
            "https://127.0.0.1:9799/batches@farm",
            "postgres: dump: batches@2026.csv",
            "design: lot 1: Tomato @ house.csv",
            "lake/key=value/batches.csv",
            "postgres://user@h/t?table=batches",
            "s3://bucket/year={year}/batches.csv",
            "https://scan.example.com:8443/api",
        ] {
            assert_eq!(secrets(text), [""; 0], "{text}");
        }
    }
}
