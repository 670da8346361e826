//! The settings in `options`, written as the server's own command line is: `-c statement_timeout=5s`.

/// Finds the value that `options` gives to a setting; the last one counts.
pub(super) fn value(options: &str, name: &str) -> Option<String> {
    let words = words(options);
    let mut words = words.iter().map(String::as_str);
    let mut found = None;
    while let Some(word) = words.next() {
        let setting = match word.strip_prefix("--") {
            Some(setting) => Some(setting),
            None if word == "-c" => words.next(),
            None => word.strip_prefix("-c"),
        };
        if let Some((key, value)) = setting.and_then(|setting| setting.split_once('='))
            && key.replace('-', "_").eq_ignore_ascii_case(name)
        {
            found = Some(value.to_owned());
        }
    }
    found
}

/// Splits at blanks; a backslash keeps the character behind it as it is.
fn words(options: &str) -> Vec<String> {
    let (mut words, mut word) = (Vec::new(), String::new());
    let mut characters = options.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => word.extend(characters.next()),
            blank if blank.is_ascii_whitespace() => words.push(std::mem::take(&mut word)),
            other => word.push(other),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_found_however_it_is_written() {
        for (options, expected) in [
            ("-c statement_timeout=5s", Some("5s")),
            ("-cstatement_timeout=5000", Some("5000")),
            ("--statement-timeout=5s", Some("5s")),
            ("-c Statement_Timeout=5\\ s -c work_mem=1GB", Some("5 s")),
            ("-c statement_timeout=5s -c statement_timeout=0", Some("0")),
            ("-c lock_timeout=5s", None),
            ("-c statement_timeout", None),
            ("", None),
        ] {
            let found = value(options, "statement_timeout");
            assert_eq!(found.as_deref(), expected, "{options}");
        }
    }
}
