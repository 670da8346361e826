//! The number formats of cells: whether a number is a date, and what people see of it.

use std::collections::HashMap;

/// The format that LibreOffice gives to TRUE and FALSE.
const BOOLEAN: &str = r#""TRUE";"TRUE";"FALSE""#;

/// The decimals that an export shows: those of the service.
const DECIMALS: usize = 2;

/// The number format of each cell format of a workbook, by its number: whether a date shows no fraction of a second, `None`
/// if numbers are not dates; and what people see.
#[derive(Debug, Default)]
pub(super) struct NumberFormats(Vec<(Option<bool>, Shown)>);

/// What people see of a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// Its value.
    Value,
    /// Its value, with at most this many decimals.
    Decimals(usize),
    /// Its value, with at most this many digits and a power of ten.
    Digits(usize),
    /// The rest, but negative numbers without a sign.
    Unsigned(Box<Self>),
    /// TRUE or FALSE.
    Boolean,
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
            None if code == BOOLEAN => Self::Boolean,
            None if shows_value(code) => with_signs(code, precision(code)),
            None => Self::Other,
        }
    }

    /// Returns whether people see this number, to the decimals that an export shows.
    pub(super) fn shows_number(&self, number: &str) -> bool {
        let (_, fraction) = number.split_once('.').unwrap_or_default();
        match self {
            Self::Value => true,
            Self::Unsigned(shown) => !number.starts_with('-') && shown.shows_number(number),
            Self::Boolean | Self::Words(_) | Self::Other => false,
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

/// Returns what people see of numbers and dates in a format that shows them in this way, by its signs and the order of its parts.
fn with_signs(code: &str, shown: Shown) -> Shown {
    let letters = without_literals(code).to_ascii_lowercase();
    let is_date = letters.contains(['y', 'm', 'd', 'h', 's']);
    if is_date {
        return if shows_day(&letters) {
            shown
        } else {
            Shown::Other
        };
    }
    let parts = parts(code);
    let has_sign = |part: usize| parts.get(part).map(|part| shows_sign(part));
    match (has_sign(0), has_sign(1)) {
        (Some(true), _) => Shown::Other,
        (_, Some(false)) => Shown::Unsigned(Box::new(shown)),
        _ => shown,
    }
}

/// Returns whether a format of a date, in lower case, shows its year, month and day in a usual order.
fn shows_day(letters: &str) -> bool {
    let first = letters.split(';').next().unwrap_or_default();
    let units: Vec<char> = first.chars().filter(char::is_ascii_alphabetic).collect();
    let units: Vec<char> = units
        .chunk_by(|one, next| one == next)
        .map(|unit| unit[0])
        .collect();
    let month = units.iter().enumerate().position(|(place, unit)| {
        let before = place.checked_sub(1).map(|before| units[before]);
        // Otherwise it is the minute.
        *unit == 'm' && before != Some('h') && units.get(place + 1) != Some(&'s')
    });
    let unit = |name: char| units.iter().position(|unit| *unit == name);
    match (unit('y'), month, unit('d')) {
        (Some(year), Some(month), Some(day)) => !(year < day && day < month),
        _ => false,
    }
}

/// Returns the parts of a format: for positive numbers, for negative ones, for zero, and for text.
fn parts(code: &str) -> Vec<&str> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let is_end = |letter: char| {
        let is_end = letter == ';' && !is_quoted && !is_escaped;
        is_quoted ^= letter == '"' && !is_escaped;
        is_escaped = !is_escaped && !is_quoted && matches!(letter, '\\' | '_' | '*');
        is_end
    };
    code.split(is_end).collect()
}

/// Returns whether a part of a format shows a sign of negative numbers.
fn shows_sign(part: &str) -> bool {
    let mut letters = part.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '-' | '−' | '(' => return true,
            // Room as wide as the next one, what fills the cell, or the sign of an exponent.
            '_' | '*' | 'E' => drop(letters.next()),
            '[' => letters
                .by_ref()
                .take_while(|letter| *letter != ']')
                .for_each(drop),
            _ => {}
        }
    }
    false
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
    let (mut is_text, mut has_words) = (false, false);
    loop {
        match letters.next() {
            // Each part must show something of the value, and words would be read as part of a text.
            None | Some(';') if !has_value || is_text && has_words => return false,
            None => return true,
            Some(';') => (has_value, is_text, has_words) = (false, false, false),
            // A sign that is not to be read as part of the format, or room as wide as one.
            Some('_') => drop(letters.next()),
            Some('\\' | '*') => match letters.next() {
                None => return false,
                Some(letter) if letter.is_numeric() => return false,
                Some(letter) => has_words |= letter.is_alphabetic(),
            },
            // A unit, but no other number.
            Some('"') => {
                let quoted = letters.by_ref().take_while(|letter| *letter != '"');
                let quoted: String = quoted.collect();
                if quoted.contains(char::is_numeric) || quoted.chars().count() > UNIT {
                    return false;
                }
                has_words |= quoted.contains(char::is_alphabetic);
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
            Some('0' | '#' | '?') => has_value = true,
            Some('@') => (has_value, is_text) = (true, true),
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
    /// `ids` are the number formats of the cell formats, and `codes` those that not every program knows.
    pub(super) fn new(ids: &[u32], codes: &HashMap<u32, String>) -> Self {
        let format = |id: &u32| {
            let code = codes.get(id).map(String::as_str);
            let is_date = code.map_or(matches!(id, 14..=22 | 27..=36 | 45..=47 | 50..=58), is_date);
            let code = code.unwrap_or_else(|| builtin_code(*id));
            (is_date.then(|| !code.contains('0')), Shown::by(code))
        };
        Self(ids.iter().map(format).collect())
    }

    /// Returns whether there is a cell format with this number; the first is always there.
    pub(super) fn has(&self, format: u32) -> bool {
        format == 0 || self.find(format).is_some()
    }

    fn find(&self, format: u32) -> Option<&(Option<bool>, Shown)> {
        self.0.get(usize::try_from(format).ok()?)
    }

    /// Returns what people see of a cell in this format.
    pub(super) fn shown(&self, format: u32) -> &Shown {
        self.find(format).map_or(&Shown::Value, |(_, shown)| shown)
    }

    /// Returns whether a date in this format shows no fraction of a second; `None` if it shows a number.
    pub(super) fn date(&self, format: u32) -> Option<bool> {
        self.find(format)?.0
    }
}

/// Returns whether a format shows a number as a date or as a time: a format of positive numbers, with letters for
/// the parts of a date.
fn is_date(code: &str) -> bool {
    let is_duration = |part: &str| {
        let (unit, _) = part.split_once(']').unwrap_or_default();
        ['h', 'm', 's']
            .iter()
            .any(|letter| !unit.is_empty() && unit.trim_matches(*letter).is_empty())
    };
    let code = code.to_ascii_lowercase();
    let rest = without_literals(&code);
    let first = rest.split(';').next().unwrap_or_default();
    first.contains(['d', 'm', 'h', 'y', 's'])
        || first.contains("a/p")
        || code
            .split(';')
            .take(1)
            .flat_map(|first| first.split('[').skip(1))
            .any(is_duration)
}

/// Returns a code that shows as much as the number format that every program knows by this number.
fn builtin_code(id: u32) -> &'static str {
    match id {
        1 | 3 | 12 | 13 | 37 | 38 | 41 | 42 => "0",
        9 | 10 => "0%",
        11 => "0.00E+00",
        47 => "mmss.0",
        48 => "##0.0E+0",
        18..=21 | 45 | 46 => "h:mm",
        // With two decimals, or a date without a fraction of a second, or unknown.
        _ => "General",
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
            ("0.00;-0.0E+0", Shown::Digits(2)),
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
            "@\" ok\"",
            "0.00;-0.00;0;\\x@",
            "-0.00",
            "\"-\"0.00;-0.00",
            "(0.00)",
            "yyyy",
            "dd",
            "hh:mm:ss",
            "mm:ss",
            "yyyy-dd-mm hh:mm:ss",
            "yyyy-hh:mm dd",
        ] {
            assert_eq!(Shown::by(code), Shown::Other, "{code}");
        }
        for code in [
            "0.00;0.00",
            "0.00;[Red]0.00",
            "#,##0.00_);_(#,##0.00_)",
            "0.00;\"+\"0.00",
        ] {
            let shown = Shown::by(code);
            assert!(
                shown.shows_number("5.05") && !shown.shows_number("-5.05"),
                "{code}"
            );
        }
        assert_eq!(Shown::by(BOOLEAN), Shown::Boolean);
        let words = Shown::by(";;;\"Usable rate (%)\"");
        assert_eq!(words, Shown::Words("Usable rate (%)".to_owned()));
    }

    #[test]
    fn dates_are_recognised_by_their_format() {
        for code in [
            "DD/MM/YY",
            "H:MM:SS;@",
            "m\"M\"d\"D\";@",
            "[h]:mm:ss",
            "[ss]",
            "[Blue]\\+[h]:mm;[Red]\\-[h]:mm",
            "[$-404]e\"x\"m\"y\"d",
            "yyyy-mm-dd hh:mm:ss.000",
            "A/P",
        ] {
            assert!(is_date(code), "{code}");
        }
        for code in [
            "General",
            "0.00E+00",
            "#,##0\\ [$\\u20bd-46D]",
            "\"Y: \"0.00\"m\";\"Y: <num>m\";@",
            "0_ ;[Red]\\-0\\ ",
            "\\Y000000",
            "#,##0.0####\" YMD\"",
            "[Red][<=5]0",
            "0;yyyy",
            "_y0",
            "*d0",
        ] {
            assert!(!is_date(code), "{code}");
        }
        let codes = [(164, "yyyy-mm-dd hh:mm:ss"), (2, "ss.000")];
        let codes = codes.map(|(id, code)| (id, code.to_owned()));
        let formats = NumberFormats::new(&[0, 164, 2, 22, 46, 30, 99], &codes.into());
        let dates = (0..8).map(|format| formats.date(format));
        let expected = [
            None,
            Some(true),
            Some(false),
            Some(true),
            Some(true),
            Some(true),
            None,
            None,
        ];
        assert_eq!(dates.collect::<Vec<_>>(), expected);
        assert!(formats.has(6) && !formats.has(7));
        assert!(NumberFormats::default().has(0));
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
