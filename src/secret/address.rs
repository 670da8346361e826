//! Finds the secrets in an address that is given as an argument. One with a typing error is quoted in messages, and the
//! parser of its kind does not know which part of it is the password.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

/// Parameters whose value is a secret, in small letters.
const SECRET_PARAMETERS: [&str; 8] = [
    "password",
    "passwd",
    "pwd",
    "sig",
    "signature",
    "x-amz-signature",
    "x-amz-security-token",
    "x-goog-signature",
];

/// What separates the parts of an address. A password may contain any of these by mistake.
const SEPARATORS: [char; 7] = ['?', '&', '#', ';', '/', ' ', '@'];

/// Returns what may be secret in `text`, as written and decoded. Empty if it does not look like an address.
pub(super) fn secrets(text: &str) -> Vec<Cow<'_, str>> {
    let lower = text.to_ascii_lowercase();
    let is_address = lower.contains("://")
        || lower.contains("postgres")
        || SECRET_PARAMETERS.iter().any(|name| lower.contains(name));
    if !is_address {
        return Vec::new();
    }
    let mut found = parameters(text);
    if let Some(password) = password(text) {
        found.push(password);
        found.extend(password.split(SEPARATORS));
    }
    // A word that is also the name of something, such as the user, must stay readable.
    found.retain(|secret| !secret.is_empty() && text.matches(secret).count() == 1);
    let decoded = |secret| percent_decode_str(secret).decode_utf8_lossy();
    let written = found.iter().copied().map(Cow::Borrowed);
    written.chain(found.iter().copied().map(decoded)).collect()
}

/// Returns the password in `scheme://user:password@host`, with any number of slashes.
fn password(text: &str) -> Option<&str> {
    let (before, _) = text.rsplit_once('@')?;
    let (_, user) = before.split_once("://").or(before.split_once(':'))?;
    user.split_once(':').map(|(_, password)| password)
}

/// Returns the values of secret parameters. What follows one and is no parameter itself may belong to the value.
fn parameters(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut is_secret = false;
    for part in text.split(SEPARATORS) {
        let parameter = part.split_once(['=', ':']);
        if let Some((name, value)) = parameter {
            is_secret = SECRET_PARAMETERS.contains(&name.to_ascii_lowercase().as_str());
            found.extend(is_secret.then_some(value));
        } else {
            found.extend(is_secret.then_some(part));
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
            "postgres://u:SECRET@h/t",
            "postgres://u:x?SECRET@h/t",
            "postgres://u:SECRET/x@h/t",
            "postgres:/u:SECRET@h/t",
            "postgres:u:SECRET@h/t",
            " postgres://u:SECRET@h/t",
            "'postgres://u:SECRET@h/t'",
            "--output=postgresql+psycopg2://u:SECRET@h/t",
            "pg://u:SECRET@h",
            "jdbc:postgresql://h/t?user=u&password=SECRET",
            "postgres://h/t?password:SECRET",
            "postgres://h/t?password=a&SECRET",
            "postgres://h/t?password=SECRET&sslmode=require",
            "postgres://h/t&password=SECRET",
            "postgres://h/t;password=SECRET",
            "host=h password=SECRET dbname=t",
            "s3://AK:SECRET@bucket/k.csv",
            "https://a.blob.core.windows.net/c/k.csv?sv=1&sig=SECRET",
            "az://c/k.csv?sig=SECRET",
            "s3://b/k.csv?X-Amz-Signature=SECRET",
            "postgres://u:%53ECRET@h/t",
        ] {
            assert!(
                secrets(address).contains(&Cow::Borrowed("SECRET")),
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
            "postgres://user@h/t?table=batches",
            "s3://bucket/year={year}/batches.csv",
            "https://scan.example.com:8443/api",
        ] {
            assert_eq!(secrets(text), [""; 0], "{text}");
        }
    }
}
