//! Text for people: escaped for a terminal, shortened, durations, and suggestions for misspelt names.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::fmt::Write as _;
use std::time::Duration;

/// Shows control characters and bidirectional overrides in `text` as visible escapes.
///
/// Line breaks and tabs are kept, because messages may have several lines.
pub(crate) fn escape(text: &str) -> Cow<'_, str> {
    escape_where(text, is_hidden)
}

/// Like [`escape`], but escapes line breaks and tabs too.
pub(crate) fn one_line(text: &str) -> Cow<'_, str> {
    escape_where(text, |character| {
        is_hidden(character) || matches!(character, '\n' | '\t')
    })
}

/// Like [`escape`] for JSON text: uses JSON escapes, since such characters only occur inside strings.
pub(crate) fn escape_json(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for character in json.chars() {
        if is_hidden(character) {
            // Writing to a string cannot fail; all of these have at most four hexadecimal digits.
            let _ = write!(shown, "\\u{:04x}", u32::from(character));
        } else {
            shown.push(character);
        }
    }
    shown
}

fn escape_where(text: &str, is_hidden: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(&is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match character {
            '\n' if is_hidden('\n') => shown.push_str("\\n"),
            '\t' if is_hidden('\t') => shown.push_str("\\t"),
            // Writing to a string cannot fail.
            hidden if is_hidden(hidden) => drop(write!(shown, "\\u{{{:x}}}", u32::from(hidden))),
            character => shown.push(character),
        }
    }
    Cow::Owned(shown)
}

/// Returns whether `character` is invisible or changes the direction of the text around it.
pub(crate) fn is_invisible(character: char) -> bool {
    matches!(
        character,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Returns whether nothing of `text` can be seen.
pub(crate) fn is_blank(text: &str) -> bool {
    let is_blank = |character: char| character.is_whitespace() || is_invisible(character);
    text.chars().all(is_blank)
}

/// Returns `name`: in quotes if its ends could not be seen, and with escapes if nothing of it could.
pub(crate) fn visible(name: &str) -> Cow<'_, str> {
    if is_blank(name) {
        Cow::Owned(format!("{name:?}"))
    } else if name.trim() != name {
        Cow::Owned(format!("\"{name}\""))
    } else {
        Cow::Borrowed(name)
    }
}

fn is_hidden(character: char) -> bool {
    let bidirectional = matches!(
        character,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    bidirectional || (character.is_control() && !matches!(character, '\n' | '\t'))
}

/// Returns `word` as a shell reads it: in quotes if it needs them.
pub(crate) fn for_shell(word: &str) -> Cow<'_, str> {
    let is_plain = |letter: char| letter.is_alphanumeric() || "/._-+:@%".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return Cow::Borrowed(word);
    }
    Cow::Owned(format!("'{}'", word.replace('\'', r"'\''")))
}

/// Shortens a value for a page with data: one line, and at most 120 characters.
pub(crate) fn shortened(text: &str) -> String {
    const CHARACTERS: usize = 120;
    let mut short: String = text.chars().take(CHARACTERS).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    one_line(&short).into_owned()
}

/// Returns the known name that `word` was most likely meant to be, or `None` if that is not clear.
///
/// A wrong suggestion is worse than none. A name qualifies if it differs from `word` only in case or in
/// `-` and `_`, if it is a few typing errors away ([`tolerance`]; swapped letters count as one), or if it
/// is the only known name that starts with `word`. Two names that are equally close cancel each other out.
pub(crate) fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let typed = normalised(word);
    // A number is a choice, not a typing error, and two letters are too few to guess from.
    if typed.chars().count() < 3 || !typed.contains(char::is_alphabetic) {
        return None;
    }
    let known: Vec<(&str, String)> = known.map(|name| (name, normalised(name))).collect();
    let mut close: Vec<_> = known
        .iter()
        .filter_map(|(name, target)| {
            let distance = strsim::damerau_levenshtein(&typed, target);
            let shared = common_prefix(&typed, target);
            (distance <= tolerance(&typed, target)).then_some(((distance, Reverse(shared)), *name))
        })
        .collect();
    close.sort_by_key(|(rank, _)| *rank);
    match close[..] {
        [(best, _), (second, _), ..] if best == second => return None,
        [(_, name), ..] => return Some(name),
        [] => {}
    }
    let mut longer = known
        .iter()
        .filter(|(_, target)| target.starts_with(&typed));
    match (longer.next(), longer.next()) {
        (Some((name, _)), None) => Some(name),
        _ => None,
    }
}

/// Returns the number of typing errors allowed: one in short names, two in longer ones.
fn tolerance(typed: &str, target: &str) -> usize {
    const SHORT: usize = 5;
    if typed.chars().count().min(target.chars().count()) <= SHORT {
        1
    } else {
        2
    }
}

/// Maps `Base_URL` and `base-url` to the same text.
fn normalised(name: &str) -> String {
    name.to_lowercase().replace('_', "-")
}

fn common_prefix(left: &str, right: &str) -> usize {
    let pairs = left.chars().zip(right.chars());
    pairs.take_while(|(left, right)| left == right).count()
}

/// The longest duration: more than any run takes, and safe for clock arithmetic.
const LONGEST: Duration = Duration::from_secs(100 * 366 * 86_400);

/// Returns a number with its noun, such as `1 batch` or `2,000 batches`.
pub(crate) fn count(number: u64, one: &str, many: &str) -> String {
    format!(
        "{} {}",
        thousands(number),
        if number == 1 { one } else { many }
    )
}

/// Joins texts, such as `a, b, c`.
pub(crate) fn join(texts: impl IntoIterator<Item = impl AsRef<str>>, between: &str) -> String {
    let mut joined = String::new();
    for (index, text) in texts.into_iter().enumerate() {
        if index > 0 {
            joined.push_str(between);
        }
        joined.push_str(text.as_ref());
    }
    joined
}

/// Formats a whole number with a comma between thousands.
pub(crate) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Describes how long something took or is ago, for people: in the largest unit that is exact, or that has ten or more.
pub(crate) fn long_time(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let units = [
        (86_400, "day", "days"),
        (3600, "hour", "hours"),
        (60, "minute", "minutes"),
    ];
    let fits = |unit: u64| seconds >= 10 * unit || seconds > 0 && seconds.is_multiple_of(unit);
    let unit = units.into_iter().find(|(unit, ..)| fits(*unit));
    let (unit, one, many) = unit.unwrap_or((1, "second", "seconds"));
    count(seconds / unit, one, many)
}

/// Describes the difference of two clocks in seconds, for people.
pub(crate) fn clock_difference(seconds: u64) -> String {
    // The date in a response has whole seconds, and is from some time ago.
    let seconds = match seconds {
        ..600 => seconds,
        _ => (seconds + 30) / 60 * 60,
    };
    long_time(Duration::from_secs(seconds))
}

/// Parses `500ms`, `30s`, `15m`, `2h`, `7d` and sums of them. The error says what a valid value is.
pub(crate) fn duration(word: &str) -> Result<Duration, String> {
    let parsed = humantime::parse_duration(word)
        .map_err(|_| "a number with a unit, such as 500ms, 30s, 15m, 2h or 7d".to_owned())?;
    if parsed > LONGEST {
        return Err("at most 100 years, such as 30s or 7d".to_owned());
    }
    Ok(parsed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_differ_by_rounded_times() {
        for (seconds, text) in [
            (599, "599 seconds"),
            (629, "10 minutes"),
            (7199, "2 hours"),
            (30 * 86_400 - 1, "30 days"),
        ] {
            assert_eq!(clock_difference(seconds), text);
        }
    }

    #[test]
    fn a_long_time_is_told_in_one_unit() {
        for (seconds, text) in [
            (0, "0 seconds"),
            (1, "1 second"),
            (90, "90 seconds"),
            (120, "2 minutes"),
            (3600, "1 hour"),
            (9600, "160 minutes"),
            (26 * 3600, "26 hours"),
            (86_400, "1 day"),
            (7 * 86_400, "7 days"),
            (2 * 86_400 + 3600, "49 hours"),
            (30 * 86_400 + 26 * 60 + 6, "30 days"),
        ] {
            assert_eq!(long_time(Duration::from_secs(seconds)), text);
        }
    }

    #[test]
    fn numbers_have_commas() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(thousands(number), text);
        }
        assert_eq!(count(1, "batch", "batches"), "1 batch");
        assert_eq!(count(1000, "batch", "batches"), "1,000 batches");
    }

    #[test]
    fn ordinary_text_passes_untouched() {
        let text = "Salat, Größe \"ok\"\n\t🌱 レタス";
        assert_eq!(escape(text), text);
    }

    #[test]
    fn blank_names_become_visible() {
        assert_eq!(visible("Leek 2"), "Leek 2");
        assert_eq!(visible("Leek 2 "), "\"Leek 2 \"");
        assert_eq!(visible(" \u{200b}"), "\" \\u{200b}\"");
    }

    #[test]
    fn one_line_stays_one_line() {
        assert_eq!(one_line("a\nb\tc\u{7}"), "a\\nb\\tc\\u{7}");
        assert_eq!(one_line("plain"), "plain");
    }

    #[test]
    fn escapes_and_overrides_become_visible() {
        assert_eq!(escape("a\u{1b}[31mb"), "a\\u{1b}[31mb");
        assert_eq!(escape("a\u{202e}b\r"), "a\\u{202e}b\\u{d}");
        assert_eq!(escape("\u{9b}2J"), "\\u{9b}2J");
    }

    const COMMANDS: [&str; 10] = [
        "export",
        "sync",
        "summary",
        "report",
        "verify",
        "check",
        "serve",
        "config",
        "completions",
        "man",
    ];
    const FLAGS: [&str; 22] = [
        "start",
        "since",
        "end",
        "until",
        "where",
        "lenient",
        "fail-on-empty",
        "fields",
        "sort",
        "limit",
        "output",
        "format",
        "manifest",
        "state",
        "sandbox",
        "base-url",
        "client-id",
        "client-secret",
        "client-secret-file",
        "retries",
        "retry-wait",
        "timeout",
    ];
    const FAULTS: [&str; 8] = [
        "503",
        "500",
        "429",
        "latency",
        "v2-missing",
        "v1-truncate",
        "shuffle",
        "truncate",
    ];

    #[test]
    fn only_likely_names_are_suggested() {
        let table: [(&[&str], &str, Option<&str>); 44] = [
            // Swapped, missing, extra and wrong letters.
            (&COMMANDS, "exprot", Some("export")),
            (&COMMANDS, "exoprt", Some("export")),
            (&COMMANDS, "expor", Some("export")),
            (&COMMANDS, "exports", Some("export")),
            (&COMMANDS, "reprot", Some("report")),
            (&COMMANDS, "serv", Some("serve")),
            (&COMMANDS, "snyc", Some("sync")),
            (&COMMANDS, "sumary", Some("summary")),
            (&COMMANDS, "verfiy", Some("verify")),
            (&COMMANDS, "chekc", Some("check")),
            (&COMMANDS, "mna", Some("man")),
            (&FLAGS, "strat", Some("start")),
            (&FLAGS, "ouptut", Some("output")),
            (&FLAGS, "fromat", Some("format")),
            (&FLAGS, "limits", Some("limit")),
            (&FLAGS, "retires", Some("retries")),
            (&FLAGS, "timout", Some("timeout")),
            (&FLAGS, "client-secrt", Some("client-secret")),
            (&FAULTS, "shufle", Some("shuffle")),
            (&FAULTS, "v2-mising", Some("v2-missing")),
            // Case, `-` and `_`.
            (&COMMANDS, "Export", Some("export")),
            (&FLAGS, "base_url", Some("base-url")),
            (&FLAGS, "baseUrl", Some("base-url")),
            (&FLAGS, "clientid", Some("client-id")),
            (&FLAGS, "CLIENT_SECRET_FILE", Some("client-secret-file")),
            // The beginning of one name.
            (&COMMANDS, "comp", Some("completions")),
            (&FLAGS, "sand", Some("sandbox")),
            (&FLAGS, "out", Some("output")),
            (&FLAGS, "stat", Some("state")),
            // The beginning of several.
            (&FLAGS, "client", None),
            (&FLAGS, "ret", None),
            // Other words.
            (&FLAGS, "seed", None),
            (&FLAGS, "batches", None),
            (&FLAGS, "emit", None),
            (&FLAGS, "from", None),
            (&COMMANDS, "port", None),
            (&COMMANDS, "import", None),
            (&COMMANDS, "login", None),
            (&COMMANDS, "download", None),
            (&COMMANDS, "", None),
            // Numbers and very short words.
            (&FAULTS, "504", None),
            (&FAULTS, "428", None),
            (&["auto", "v1", "v2"], "v3", None),
            (&["csv", "tsv"], "xsv", None),
        ];
        for (known, word, expected) in table {
            let found = nearest(word, known.iter().copied());
            assert_eq!(found, expected, "{word}");
        }
    }

    #[test]
    fn a_duration_needs_a_unit_and_an_end() {
        assert_eq!(duration("1m 30s"), Ok(Duration::from_secs(90)));
        for wrong in ["", "5", "s", "-5s", "soon"] {
            let expected = duration(wrong).expect_err(wrong);
            assert!(expected.starts_with("a number with a unit"), "{expected}");
        }
        let long = duration("101y").expect_err("too long");
        assert!(long.starts_with("at most 100 years"), "{long}");
    }
}
