//! Text for people: made harmless for a terminal, shortened, durations, and suggestions for misspelt names.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::time::Duration;

use crate::conceal;

/// Shows control characters and bidirectional overrides in `text` as visible escapes.
///
/// Line breaks and tabs stay: messages of more than one line are made of them.
pub(crate) fn escape(text: &str) -> Cow<'_, str> {
    escape_where(text, is_hidden)
}

/// Like [`escape`], but line breaks and tabs are shown too.
pub(crate) fn one_line(text: &str) -> Cow<'_, str> {
    escape_where(text, |character| {
        is_hidden(character) || matches!(character, '\n' | '\t')
    })
}

/// Writes what [`escape`] would show as escapes of JSON: in JSON, it stands inside strings only.
pub(crate) fn escape_json(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for character in json.chars() {
        if is_hidden(character) {
            // Writing to a string cannot fail; all of these are short of surrogates.
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

/// Tells whether nobody sees `character`, or it turns what stands around it.
pub(crate) fn is_invisible(character: char) -> bool {
    matches!(
        character,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}'
    )
}

fn is_hidden(character: char) -> bool {
    let bidirectional = matches!(
        character,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    bidirectional || (character.is_control() && !matches!(character, '\n' | '\t'))
}

/// Shows a name from elsewhere: on one line, and no more of it than tells it from others.
pub(crate) fn brief(text: &str) -> String {
    const CHARACTERS: usize = 120;
    // Half a secret would not be recognised any more.
    let text = conceal(text);
    let mut short: String = text.chars().take(CHARACTERS).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    one_line(&short).into_owned()
}

/// Returns the known word that is most like `word`, where one is like it at all.
pub(crate) fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|known| (strsim::jaro_winkler(word, known), known))
        .filter(|(likeness, _)| *likeness > 0.8)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, known)| known)
}

/// The longest duration: more than anybody waits, and little enough for clocks to add up.
const LONGEST: Duration = Duration::from_secs(100 * 366 * 86_400);

/// Accepts `500ms`, `30s`, `15m`, `2h`, `7d` and sums of them.
pub(crate) fn duration(word: &str) -> Result<Duration, String> {
    let parsed = humantime::parse_duration(word).ok();
    parsed
        .filter(|duration| *duration <= LONGEST)
        .ok_or_else(|| {
            "write a number and a unit, such as 500ms, 30s, 15m, 2h or 7d, up to 100 years"
                .to_owned()
        })
}

#[cfg(test)]
mod tests {
    use super::{escape, one_line};

    #[test]
    fn ordinary_text_passes_untouched() {
        let text = "Salat, Größe \"ok\"\n\t🌱 レタス";
        assert_eq!(escape(text), text);
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
}
