//! The number formats of cells: whether a number is a date, and what people see of it.

use calamine::Style;

/// Which formats of cells are dates, as far as exports use them, and which show no fraction of a second.
pub(super) struct NumberFormats {
    dates: Vec<Option<bool>>,
    whole_seconds: Vec<bool>,
    shown: Vec<Shown>,
}

/// What people see of a cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Shown {
    /// Its value.
    Value,
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
            None if shows_value(code) => Self::Value,
            None => Self::Other,
        }
    }
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
        let is_date = |style: &Style| {
            let format = style.number_format.as_ref()?;
            match (format.format_id?, format.format_code.as_str()) {
                // That is also the code of a number that calamine does not know.
                (0, "General") | (_, "0" | "0.00" | "@") => Some(false),
                (_, "yyyy-mm-dd hh:mm:ss" | "yyyy-mm-dd hh:mm:ss.000") => Some(true),
                _ => None,
            }
        };
        let has_no_fraction = |style: &Style| {
            let format = style.number_format.as_ref();
            format.is_some_and(|format| !format.format_code.contains('0'))
        };
        let shown = |style: &Style| {
            let format = style.number_format.as_ref();
            format.map_or(Shown::Value, |format| Shown::by(&format.format_code))
        };
        Self {
            shown: styles.iter().map(shown).collect(),
            dates: styles.iter().map(is_date).collect(),
            whole_seconds: styles.iter().map(has_no_fraction).collect(),
        }
    }

    /// Returns whether dates in this format show no fraction of a second.
    pub(super) fn has_whole_seconds(&self, format: Option<u32>) -> bool {
        let format = format.and_then(|format| usize::try_from(format).ok());
        format.and_then(|format| self.whole_seconds.get(format)) == Some(&true)
    }

    /// Returns what people see of a cell in this format.
    pub(super) fn shown(&self, format: Option<u32>) -> &Shown {
        let format = format.and_then(|format| usize::try_from(format).ok());
        format
            .and_then(|format| self.shown.get(format))
            .unwrap_or(&Shown::Value)
    }

    /// Returns whether numbers in this format are dates; `None` if unknown.
    pub(super) fn is_date(&self, format: Option<u32>) -> Option<bool> {
        match format {
            Some(format) => *self.dates.get(usize::try_from(format).ok()?)?,
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
            "0",
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
            "0.00E+00",
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
}
