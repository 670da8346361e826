//! The number formats of cells: whether a number is a date, and what people see of it.

use calamine::Style;

/// The decimals that an export shows: those of the service.
const DECIMALS: usize = 2;

/// The number formats of a workbook.
pub(super) struct NumberFormats(Vec<NumberFormat>);

struct NumberFormat {
    /// Whether numbers are dates; `None` if exports do not use it.
    is_date: Option<bool>,
    /// Whether it shows no fraction of a second.
    has_whole_seconds: bool,
    shown: Shown,
}

/// What people see of a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// Its value.
    Value,
    /// Its value, with at most this many decimals.
    Decimals(usize),
    /// Its value, with at most this many digits and a power of ten.
    Digits(usize),
    /// These words instead of its text.
    Words(String),
    /// Something else.
    Other,
}

impl Shown {
    fn by(code: &str) -> Self {
        let words = code.strip_prefix(r#";;;""#);
        let words = words.and_then(|words| words.strip_suffix('"'));
        match words.filter(|words| !words.contains('"')) {
            Some(words) => Self::Words(words.to_owned()),
            None if shows_value(code) => precision(code),
            None => Self::Other,
        }
    }

    /// Returns whether people see this number, to the decimals that an export shows.
    pub(super) fn shows_number(&self, number: &str) -> bool {
        let (_, fraction) = number.split_once('.').unwrap_or_default();
        match self {
            Self::Value => true,
            Self::Words(_) | Self::Other => false,
            Self::Decimals(most) => fraction.len().min(DECIMALS) <= *most,
            Self::Digits(most) => {
                let unseen = fraction.len().saturating_sub(DECIMALS);
                let seen = &number[..number.len() - unseen];
                let digits: String = seen.chars().filter(char::is_ascii_digit).collect();
                digits.trim_matches('0').len() <= *most
            }
        }
    }
}

/// Returns how exactly a format that shows the value does so.
fn precision(code: &str) -> Shown {
    let code = without_literals(code);
    let precision = |part: &str| {
        let is_date = part.contains(['y', 'm', 'd', 'h', 's', 'Y', 'M', 'D', 'H', 'S']);
        if part.contains(['@', 'G']) || is_date {
            return Shown::Value;
        }
        let (number, power) = part.split_once('E').unwrap_or((part, ""));
        let (_, fraction) = number.split_once('.').unwrap_or_default();
        // A fraction such as `1/20` is rounded, too.
        let is_placeholder = |letter: &char| matches!(letter, '0' | '#' | '?');
        let decimals = if number.contains('/') {
            0
        } else {
            fraction.chars().filter(is_placeholder).count()
        };
        match power {
            "" if decimals >= DECIMALS => Shown::Value,
            "" => Shown::Decimals(decimals),
            _ => Shown::Digits(decimals + 1),
        }
    };
    // Those of positive and of negative numbers; the others are for zero and for text.
    let mut parts = code.split(';').take(2).map(precision);
    let first = parts.next().unwrap_or(Shown::Value);
    match (first, parts.next()) {
        (Shown::Value, Some(second)) => second,
        (Shown::Decimals(first), Some(Shown::Decimals(second))) => {
            Shown::Decimals(first.min(second))
        }
        (Shown::Digits(first), Some(Shown::Digits(second))) => Shown::Digits(first.min(second)),
        (first, None | Some(Shown::Value)) => first,
        _ => Shown::Other,
    }
}

/// Returns a format without the signs that it shows as they are, and without languages and colours.
fn without_literals(code: &str) -> String {
    let mut letters = code.chars();
    let mut rest = String::new();
    while let Some(letter) = letters.next() {
        match letter {
            '_' | '\\' | '*' => drop(letters.next()),
            '"' | '[' => {
                let end = if letter == '[' { ']' } else { '"' };
                let inside = letters.by_ref().take_while(|letter| *letter != end);
                inside.for_each(drop);
            }
            letter => rest.push(letter),
        }
    }
    rest
}

/// Returns whether a number format shows the value as it is: the digits of a number, or the parts of a date, with signs
/// between and around them. It may have parts for positive and negative numbers, and for text.
fn shows_value(code: &str) -> bool {
    /// The longest unit, with blanks.
    const UNIT: usize = 5;
    if matches!(code, "General" | "GENERAL" | "@") {
        return true;
    }
    let code = code.replace("AM/PM", "").replace("a/p", "");
    let code = code.replace("General", "0");
    let mut letters = code.chars();
    let (mut has_value, mut is_date) = (false, false);
    loop {
        match letters.next() {
            // Each part must show something of the value.
            None | Some(';') if !has_value => return false,
            None => return true,
            Some(';') => has_value = false,
            // A sign that is not to be read as part of the format, or room as wide as one.
            Some('_') => drop(letters.next()),
            Some('\\' | '*') => {
                if letters.next().is_none_or(char::is_numeric) {
                    return false;
                }
            }
            // A unit, but no other number.
            Some('"') => {
                let quoted = letters.by_ref().take_while(|letter| *letter != '"');
                let quoted: String = quoted.collect();
                if quoted.contains(char::is_numeric) || quoted.chars().count() > UNIT {
                    return false;
                }
            }
            // A language or a colour, but no condition.
            Some('[') => {
                let inside: String = letters
                    .by_ref()
                    .take_while(|letter| *letter != ']')
                    .collect();
                let sign = inside.strip_prefix('$');
                let sign = sign.map(|sign| sign.split('-').next().unwrap_or_default());
                let name = inside.strip_prefix("Color").unwrap_or(&inside);
                let is_colour = name.chars().all(|letter| letter.is_ascii_alphanumeric());
                if sign.map_or(!is_colour, |sign| sign.contains(char::is_numeric)) {
                    return false;
                }
            }
            Some('0' | '#' | '?' | '@') => has_value = true,
            Some('y' | 'm' | 'd' | 'h' | 's' | 'Y' | 'M' | 'D' | 'H' | 'S') => {
                (has_value, is_date) = (true, true);
            }
            // After the last digit, it would divide a number by a thousand.
            Some(',') if is_date || letters.as_str().starts_with('#') => {}
            Some('E') if letters.as_str().starts_with(['+', '-']) => {}
            Some('-' | '/' | ':' | '.' | ' ' | '(' | ')' | '+' | '\'' | '€' | '$' | '£' | '¥') =>
                {}
            _ => return false,
        }
    }
}

impl NumberFormats {
    pub(super) fn new(styles: &[Style]) -> Self {
        let format = |style: &Style| {
            let format = style.number_format.as_ref();
            let code = format.map(|format| format.format_code.as_str());
            NumberFormat {
                is_date: match (format.and_then(|format| format.format_id), code) {
                    // That is also the code of a number that calamine does not know.
                    (Some(0), Some("General")) | (Some(_), Some("0" | "0.00" | "@")) => Some(false),
                    (Some(_), Some("yyyy-mm-dd hh:mm:ss" | "yyyy-mm-dd hh:mm:ss.000")) => {
                        Some(true)
                    }
                    _ => None,
                },
                has_whole_seconds: code.is_some_and(|code| !code.contains('0')),
                shown: code.map_or(Shown::Value, Shown::by),
            }
        };
        Self(styles.iter().map(format).collect())
    }

    fn find(&self, format: Option<u32>) -> Option<&NumberFormat> {
        self.0.get(usize::try_from(format?).ok()?)
    }

    /// Returns whether dates in this format show no fraction of a second.
    pub(super) fn has_whole_seconds(&self, format: Option<u32>) -> bool {
        self.find(format)
            .is_some_and(|format| format.has_whole_seconds)
    }

    /// Returns what people see of a cell in this format.
    pub(super) fn shown(&self, format: Option<u32>) -> &Shown {
        self.find(format)
            .map_or(&Shown::Value, |format| &format.shown)
    }

    /// Returns whether numbers in this format are dates; `None` if unknown.
    pub(super) fn is_date(&self, format: Option<u32>) -> Option<bool> {
        match format {
            Some(_) => self.find(format)?.is_date,
            None => Some(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_show_the_value_or_words() {
        for code in [
            "General",
            "@",
            "0.00",
            "#,##0.00",
            "yyyy-mm-dd hh:mm:ss",
            "yyyy\\-mm\\-dd\\ hh:mm:ss;@",
            "yyyy\"-\"mm\"-\"dd\" \"hh\":\"mm\":\"ss.000",
            "[$-409]d/m/yyyy h:mm AM/PM",
            "[$-F800]dddd\\,\\ mmmm\\ dd\\,\\ yyyy",
            "0.00_ ;[Red]-0.00\\ ",
            "_(* #,##0.00_);_(* (#,##0.00);_(* \"-\"??_);_(@_)",
            "\"€\" #,##0.00",
            "0.00\" mm\"",
            "yyyy-mm-dd\"T\"hh:mm:ss\"Z\"",
            "[Color10]0.00",
            "_-* #,##0.00\\ _k_r_-",
            "[$€-2]\\ #,##0.00",
            "#'##0.00",
            "dd-mmm-yy h:mm a/p",
        ] {
            assert_eq!(Shown::by(code), Shown::Value, "{code}");
        }
        for (code, shown) in [
            ("0", Shown::Decimals(0)),
            ("#,##0", Shown::Decimals(0)),
            ("0.0\" mm\"", Shown::Decimals(1)),
            ("0.00;[Red]-0", Shown::Decimals(0)),
            ("0;-0.00", Shown::Decimals(0)),
            ("# ?/?", Shown::Decimals(0)),
            ("0.00E+00", Shown::Digits(3)),
            ("0.00;0.0E+0", Shown::Digits(2)),
        ] {
            assert_eq!(Shown::by(code), shown, "{code}");
        }
        for code in [
            ";;;",
            "0.00%",
            "0.00,",
            "0.00\"9\"",
            "\"99.99\"",
            "99.99",
            "\\2\\0-mm-dd",
            "[<50]0.00;\"good\"",
            "[<50]0.00;0.00",
            "0.00;",
            "0.00;;",
            "0,00",
            "[$9-2]0.00",
            "\"forged \"@",
        ] {
            assert_eq!(Shown::by(code), Shown::Other, "{code}");
        }
        let words = Shown::by(";;;\"Usable rate (%)\"");
        assert_eq!(words, Shown::Words("Usable rate (%)".to_owned()));
    }

    #[test]
    fn a_format_must_not_hide_decimals() {
        for (shown, number, expected) in [
            (Shown::Decimals(0), "55", true),
            (Shown::Decimals(0), "55.05", false),
            (Shown::Decimals(1), "55.5", true),
            (Shown::Decimals(1), "55.05", false),
            (Shown::Value, "55.0512", true),
            (Shown::Digits(3), "104", true),
            (Shown::Digits(3), "-0.55", true),
            (Shown::Digits(3), "55.05", false),
            (Shown::Digits(4), "55.0512", true),
            (Shown::Digits(1), "1000", true),
            (Shown::Other, "1", false),
        ] {
            assert_eq!(shown.shows_number(number), expected, "{shown:?} {number}");
        }
    }
}
