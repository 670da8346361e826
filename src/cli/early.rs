//! Flags that are needed before the command line is parsed: how to show a mistake on it.

use std::ffi::{OsStr, OsString};

use clap::ValueEnum;

use super::message_format_variable;
use crate::terminal::{MessageFormat, When};

/// The flags that decide how a mistake on the command line is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Early {
    pub(crate) color: When,
    pub(crate) message_format: MessageFormat,
}

impl Early {
    /// Finds them in `args` and the environment without parsing. Ignores invalid values: clap reports
    /// them later.
    pub(crate) fn scan(args: &[OsString]) -> Self {
        let variable = message_format_variable();
        let variable = variable.and_then(std::env::var_os);
        Self {
            color: find(args, &["--color"]).unwrap_or_default(),
            message_format: find(args, &["--message-format", "--error-format"])
                .or_else(|| value(variable.as_deref()?))
                .unwrap_or_default(),
        }
    }
}

/// Returns the last valid value of the flag with these names, written `--flag value` or `--flag=value`.
fn find<T: ValueEnum>(args: &[OsString], names: &[&str]) -> Option<T> {
    let words = args.iter().take_while(|word| *word != "--").enumerate();
    words
        .filter_map(|(index, word)| {
            let word = word.to_str()?;
            if names.contains(&word) {
                return value(args.get(index + 1)?);
            }
            let (name, attached) = word.split_once('=')?;
            value(OsStr::new(names.contains(&name).then_some(attached)?))
        })
        .last()
}

fn value<T: ValueEnum>(word: &OsStr) -> Option<T> {
    T::from_str(word.to_str()?, false).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(words: &[&str]) -> Early {
        let args: Vec<OsString> = words.iter().map(OsString::from).collect();
        Early::scan(&args)
    }

    #[test]
    fn early_flags_are_found_in_both_spellings() {
        assert_eq!(
            scan(&["t", "--message-format", "json"]).message_format,
            MessageFormat::Json
        );
        assert_eq!(
            scan(&["t", "x", "--error-format=json"]).message_format,
            MessageFormat::Json
        );
        assert_eq!(scan(&["t", "--color=never"]).color, When::Never);
    }

    #[test]
    fn what_is_no_flag_or_no_value_is_passed_over() {
        assert_eq!(scan(&["t", "--color"]), Early::default());
        assert_eq!(scan(&["t", "--message-format=xml"]), Early::default());
        assert_eq!(
            scan(&["t", "--", "--message-format=json"]),
            Early::default()
        );
    }
}
