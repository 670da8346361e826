//! The script for fish.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::model::{
    ArgValues, CommandModel, OptionModel, ValueModel, Word, condition_fields, plain,
};
use crate::text::join;

pub(super) fn script(commands: &[CommandModel]) -> String {
    let mut script = String::from("# Completions of trayscan for fish.\n\n");
    // Writing to a string cannot fail, here and below.
    let _ = write!(
        script,
        "# Commands that have subcommands, and options that have a value.\n\
         set -g __trayscan_parents {}\nset -g __trayscan_valued {}\n\n",
        parents(commands),
        valued(commands),
    );
    script.push_str(include_str!("functions.fish"));
    for command in commands {
        let at = format!(
            "\ncomplete -c trayscan -n \"__trayscan_at '{}'\"",
            command.path
        );
        for Word { word, help } in &command.subcommands {
            let _ = write!(script, "{at} -a {word} -d '{}'", quoted(help));
        }
        for (index, value) in command.positionals.iter().enumerate() {
            let _ = write!(
                script,
                "\ncomplete -c trayscan -n \"__trayscan_at '{}' {index}\" {}",
                command.path,
                argument(value)
            );
        }
        for option in &command.options {
            let _ = write!(script, "{at} {}", self::option(option));
        }
    }
    script + "\n"
}

/// Lists the commands that have subcommands, other than the program itself.
fn parents(commands: &[CommandModel]) -> String {
    let is_parent =
        |command: &&CommandModel| !command.subcommands.is_empty() && !command.path.is_empty();
    join(
        commands
            .iter()
            .filter(is_parent)
            .map(|command| &command.path),
        " ",
    )
}

/// Lists the options whose value is the next word.
fn valued(commands: &[CommandModel]) -> String {
    let options = commands.iter().flat_map(|command| &command.options);
    let valued = options.filter(|option| {
        let value = option.value.as_ref();
        value.is_some_and(|value| !value.needs_equals && !value.is_optional)
    });
    let names: BTreeSet<&String> = valued.flat_map(|option| &option.names).collect();
    join(names, " ")
}

fn option(option: &OptionModel) -> String {
    let mut text = String::new();
    for name in &option.names {
        let _ = match name.strip_prefix("--") {
            Some(long) => write!(text, "-l {long} "),
            None => write!(text, "-s {} ", name.trim_start_matches('-')),
        };
    }
    let _ = write!(text, "-d '{}'", quoted(&option.help));
    match &option.value {
        None => text,
        Some(value) if value.needs_equals => format!("{text} {}", argument(value)),
        Some(value) => format!("{text} -r {}", argument(value)),
    }
}

/// Returns what to offer for a value.
fn argument(value: &ValueModel) -> String {
    match &value.values {
        ArgValues::Nothing => "-f".to_owned(),
        ArgValues::Files => "-F".to_owned(),
        ArgValues::Folders => "-f -a '(__fish_complete_directories)'".to_owned(),
        ArgValues::Words(words) => {
            // fish splits and expands the list once more.
            let words = words.iter().map(|Word { word, help }| match help.as_str() {
                "" => word.clone(),
                help => format!("{word}\\t'{}'", quoted(help)),
            });
            format!("-f -a '{}'", quoted(&join(words, " ")))
        }
        ArgValues::List(words) => format!("-f -a '(__trayscan_list {})'", plain(words)),
        ArgValues::Condition => {
            let [fields, booleans] = condition_fields();
            format!("-f -a '(__trayscan_condition \"{fields}\" \"{booleans}\")'")
        }
        ArgValues::Command(kind) => format!("-f -a '(__trayscan_lines {kind})'"),
    }
}

/// Escapes text inside single quotes.
fn quoted(text: &str) -> String {
    text.replace('\\', "\\\\").replace('\'', "\\'")
}
