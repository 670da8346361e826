//! The words on the command line for choices that other modules define.

use clap::ValueEnum;
use clap::builder::PossibleValue;
use clap_complete::Shell;

use super::Completions;
use crate::formats::Format;
use crate::terminal::{MessageFormat, When};

impl ValueEnum for When {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::Auto, Self::Always, Self::Never]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(match self {
            Self::Auto => "auto",
            Self::Always => "always",
            Self::Never => "never",
        }))
    }
}

impl ValueEnum for MessageFormat {
    fn value_variants<'a>() -> &'a [Self] {
        &[Self::Text, Self::Json]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(match self {
            Self::Text => "text",
            Self::Json => "json",
        }))
    }
}

impl ValueEnum for Completions {
    fn value_variants<'a>() -> &'a [Self] {
        &[
            Self::Shell(Shell::Bash),
            Self::Shell(Shell::Elvish),
            Self::Shell(Shell::Fish),
            Self::Shell(Shell::PowerShell),
            Self::Shell(Shell::Zsh),
            Self::Profiles,
            Self::TimeZones,
        ]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        match self {
            Self::Shell(shell) => shell.to_possible_value(),
            Self::Profiles => Some(PossibleValue::new("profiles").hide(true)),
            Self::TimeZones => Some(PossibleValue::new("time-zones").hide(true)),
        }
    }
}

impl ValueEnum for Format {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::ALL
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let value = PossibleValue::new(self.name());
        Some(match self {
            // The other usual name, as in file names.
            Self::Ndjson => value.alias("jsonl"),
            _ => value,
        })
    }
}
