//! Flags that are needed before the command line is parsed: how to show a mistake on it.

use std::ffi::{OsStr, OsString};

use clap::ValueEnum;

use super::ERROR_FORMAT_VARIABLE;
use crate::terminal::{ErrorFormat, When};

/// The flags that decide how a mistake on the command line is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Early {
    pub(crate) color: When,
    pub(crate) error_format: ErrorFormat,
}

impl Early {
    /// Finds them in `args` and the environment without parsing. Ignores invalid values: clap reports
    /// them later.
    pub(crate) fn scan(args: &[OsString]) -> Self {
        let variable = std::env::var_os(ERROR_FORMAT_VARIABLE);
        Self {
            color: find(args, "--color").unwrap_or_default(),
            error_format: find(args, "--error-format")
                .or_else(|| value(variable.as_deref()?))
                .unwrap_or_default(),
        }
    }
}

/// Returns the last valid value of `flag`, written `--flag value` or `--flag=value`.
fn find<T: ValueEnum>(args: &[OsString], flag: &str) -> Option<T> {
    let attached = format!("{flag}=");
    let words = args.iter().take_while(|word| *word != "--").enumerate();
    words
        .filter_map(|(index, word)| {
            if word == flag {
                return value(args.get(index + 1)?);
            }
            value(OsStr::new(word.to_str()?.strip_prefix(&attached)?))
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
            scan(&["t", "--error-format", "json"]).error_format,
            ErrorFormat::Json
        );
        assert_eq!(
            scan(&["t", "x", "--error-format=json"]).error_format,
            ErrorFormat::Json
        );
        assert_eq!(scan(&["t", "--color=never"]).color, When::Never);
    }

    #[test]
    fn what_is_no_flag_or_no_value_is_passed_over() {
        assert_eq!(scan(&["t", "--color"]), Early::default());
        assert_eq!(scan(&["t", "--error-format=xml"]), Early::default());
        assert_eq!(scan(&["t", "--", "--error-format=json"]), Early::default());
    }
}
