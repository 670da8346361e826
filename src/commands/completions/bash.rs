//! The script for bash.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::model::{ArgValues, CommandModel, OptionModel, condition_fields, plain};
use crate::text::join;

pub(super) fn script(commands: &[CommandModel]) -> String {
    let mut script = String::from("# Completions of trayscan for bash.\n\n");
    script.push_str(&options(commands));
    script.push_str(&values(commands));
    script.push_str(&arguments(commands));
    script.push_str(include_str!("functions.bash"));
    script
}

/// Returns the function that sets the options of a command, those that have a value, and its subcommands.
fn options(commands: &[CommandModel]) -> String {
    let mut text = String::from("_trayscan_options() {\n    case $command in\n");
    for command in commands {
        let names = |keep: &dyn Fn(&OptionModel) -> bool| {
            let kept = command.options.iter().filter(|option| keep(option));
            join(kept.flat_map(|option| &option.names), " ")
        };
        // An option that needs `=` never takes the next word.
        let takes_next = |option: &OptionModel, is_optional: bool| {
            let value = option.value.as_ref();
            value.is_some_and(|value| !value.needs_equals && value.is_optional == is_optional)
        };
        // Writing to a string cannot fail, here and below.
        let _ = write!(
            text,
            "        '{}')\n            flags='{}'\n            valued='{}'\n            optional='{}'\n            subcommands='{}'\n            ;;\n",
            command.path,
            names(&|_| true),
            names(&|option| takes_next(option, false)),
            names(&|option| takes_next(option, true)),
            plain(&command.subcommands),
        );
    }
    text + "    esac\n}\n\n"
}

/// Returns the function that offers the values of an option.
fn values(commands: &[CommandModel]) -> String {
    // Most options offer the same in every command.
    let mut offers: BTreeMap<&str, BTreeMap<String, Vec<&str>>> = BTreeMap::new();
    for command in commands {
        for option in &command.options {
            let Some(value) = &option.value else { continue };
            for name in &option.names {
                let offered = offers.entry(name).or_default();
                let commands = offered.entry(offer(&value.values)).or_default();
                commands.push(&command.path);
            }
        }
    }
    let mut text = String::from("_trayscan_value() {\n    case \"$command $flag\" in\n");
    for (name, offered) in offers {
        let is_same = offered.len() == 1;
        for (offer, commands) in offered {
            let patterns = commands.iter().map(|command| format!("'{command} {name}'"));
            let pattern = if is_same {
                format!("*' {name}'")
            } else {
                join(patterns, " | ")
            };
            let _ = writeln!(text, "        {pattern}) {offer} ;;");
        }
    }
    text + "    esac\n}\n\n"
}

/// Returns the function that offers values of arguments without a name.
fn arguments(commands: &[CommandModel]) -> String {
    let mut text = String::from("_trayscan_argument() {\n    case \"$command $index\" in\n");
    for command in commands {
        for (index, value) in command.positionals.iter().enumerate() {
            let (path, offer) = (&command.path, offer(&value.values));
            let _ = writeln!(text, "        '{path} {index}') {offer} ;;");
        }
    }
    text + "    esac\n}\n\n"
}

fn offer(values: &ArgValues) -> String {
    match values {
        ArgValues::Nothing => ":".to_owned(),
        ArgValues::Files => "_trayscan_files".to_owned(),
        ArgValues::Folders => "_trayscan_files -d".to_owned(),
        ArgValues::Words(words) => format!("_trayscan_offer {}", plain(words)),
        ArgValues::List(words) => format!("_trayscan_list {}", plain(words)),
        ArgValues::Condition => {
            let [fields, booleans] = condition_fields();
            format!("_trayscan_condition '{fields}' '{booleans}'")
        }
        ArgValues::Command(kind) => format!("_trayscan_lines {kind}"),
    }
}
