//! `completions`: scripts for shells, generated from the clap types.
//!
//! The scripts for bash, zsh and fish also know the values of options: files, fields, periods and so on. They run
//! `trayscan completions profiles` and `trayscan completions time-zones` for values that are not in the script. The
//! scripts for elvish and PowerShell are those of `clap_complete`.

// The commands, options and values to complete.
mod model;

mod bash;

mod fish;

mod zsh;

use std::path::PathBuf;

use clap_complete::Shell;

use crate::batch::Zone;
use crate::cli::{self, Completions};
use crate::config::file;

/// Returns the script for a shell, or values for such a script, one per line.
pub(super) fn text(completions: Completions) -> String {
    let generated = |shell: Shell| {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut cli::command(), "trayscan", &mut script);
        String::from_utf8_lossy(&script).into_owned()
    };
    match completions {
        Completions::Bash => bash::script(&model::commands()),
        Completions::Zsh => zsh::script(&model::commands()),
        Completions::Fish => fish::script(&model::commands()),
        Completions::Elvish => generated(Shell::Elvish),
        Completions::PowerShell => generated(Shell::PowerShell),
        Completions::Profiles => {
            let config = std::env::var_os("TRAYSCAN_CONFIG").filter(|path| !path.is_empty());
            lines(file::profiles(config.map(PathBuf::from)).into_keys())
        }
        Completions::TimeZones => lines(Zone::names()),
    }
}

fn lines(words: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let mut lines = String::new();
    for word in words {
        lines.push_str(word.as_ref());
        lines.push('\n');
    }
    lines
}
