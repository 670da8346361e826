//! The script for zsh.

use std::fmt::Write as _;

use super::model::{
    ArgValues, CommandModel, OptionModel, ValueModel, Word, condition_fields, plain,
};
use crate::text::join;

pub(super) fn script(commands: &[CommandModel]) -> String {
    let mut script = String::from("#compdef trayscan\n# Completions of trayscan for zsh.\n\n");
    for command in commands {
        script.push_str(&function(command));
    }
    script.push_str(include_str!("functions.zsh"));
    script
}

/// Returns the name of the function for a command.
fn name(path: &str) -> String {
    format!("_trayscan {path}").trim_end().replace(' ', "_")
}

fn function(command: &CommandModel) -> String {
    let has_subcommands = !command.subcommands.is_empty();
    let mut text = format!("{}() {{\n", name(&command.path));
    if has_subcommands {
        text.push_str("    local curcontext=$curcontext state state_descr line\n");
        text.push_str("    local -A opt_args\n");
    }
    if command.path.is_empty() {
        text.push_str("    local trayscan=$words[1]\n");
    }
    let mut specs: Vec<String> = command.options.iter().map(option).collect();
    specs.extend(command.positionals.iter().map(|value| {
        let colon = if value.is_optional { "::" } else { ":" };
        format!("'{colon}{}'", argument(value))
    }));
    if has_subcommands {
        specs.extend(["': :->command'".to_owned(), "'*:: :->arguments'".to_owned()]);
    }
    let flags = if has_subcommands { "-s -S -C" } else { "-s -S" };
    // Writing to a string cannot fail, here and below.
    let _ = writeln!(
        text,
        "    _arguments {flags} : \\\n        {}",
        specs.join(" \\\n        ")
    );
    if has_subcommands {
        text.push_str(&subcommands(command));
    }
    text + "}\n\n"
}

/// Returns the code that completes a subcommand, and what follows it.
fn subcommands(command: &CommandModel) -> String {
    let mut text =
        String::from("    case $state in\n        command)\n            local -a commands=(\n");
    for Word { word, help } in &command.subcommands {
        let _ = writeln!(text, "                '{word}:{}'", quoted(help));
    }
    text.push_str(
        "            )\n            _describe -t commands command commands\n            ;;\n",
    );
    text.push_str("        arguments)\n            case $words[1] in\n");
    for Word { word, .. } in &command.subcommands {
        let path = format!("{} {word}", command.path);
        let function = name(path.trim_start());
        let _ = writeln!(text, "                {word}) {function} ;;");
    }
    text + "            esac\n            ;;\n    esac\n"
}

fn option(option: &OptionModel) -> String {
    let value = option.value.as_ref();
    let names = option.names.iter().map(|name| match value {
        None => name.clone(),
        Some(value) if value.needs_equals => format!("{name}=-"),
        Some(_) if name.starts_with("--") => format!("{name}="),
        Some(_) => format!("{name}+"),
    });
    let before = if option.is_repeatable {
        "'*'".to_owned()
    } else {
        format!("'({})'", option.names.join(" "))
    };
    let names = match names.len() {
        1 => names.collect(),
        _ => format!("{{{}}}", join(names, ",")),
    };
    let help = quoted(&escaped(&option.help, &['[', ']', ':']));
    let value = value.map_or_else(String::new, |value| {
        let colon = if value.is_optional { "::" } else { ":" };
        format!("{colon}{}", argument(value))
    });
    format!("{before}{names}'[{help}]{value}'")
}

/// Returns the name of a value and what to offer for it.
fn argument(value: &ValueModel) -> String {
    let name = escaped(&value.name, &[':']);
    format!("{}:{}", quoted(&name), quoted(&offer(&value.values)))
}

fn offer(values: &ArgValues) -> String {
    match values {
        ArgValues::Nothing => " ".to_owned(),
        ArgValues::Files => "_files".to_owned(),
        ArgValues::Folders => "_files -/".to_owned(),
        ArgValues::Words(words) if words.iter().any(|word| word.word.contains(':')) => {
            call("_trayscan_words", &plain(words))
        }
        ArgValues::Words(words) if words.iter().all(|word| word.help.is_empty()) => {
            format!("({})", plain(words))
        }
        ArgValues::Words(words) => {
            let described = words.iter().map(|Word { word, help }| {
                let help = escaped(help, &['"', ':', '(', ')', '$', '`']);
                format!("{word}\\:\"{help}\"")
            });
            format!("(({}))", join(described, " "))
        }
        ArgValues::List(words) => call("_trayscan_list", &plain(words)),
        ArgValues::Condition => {
            let [fields, booleans] = condition_fields();
            let arguments = format!("\"{fields}\" \"{booleans}\"");
            call("_trayscan_condition", &arguments)
        }
        ArgValues::Command(kind) => call("_trayscan_lines", kind),
    }
}

/// Returns a call of a function, as an action of `_arguments`.
fn call(function: &str, arguments: &str) -> String {
    format!("{{{function} {}}}", escaped(arguments, &[':']))
}

/// Puts a backslash before these characters.
fn escaped(text: &str, special: &[char]) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        if character == '\\' || special.contains(&character) {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

/// Escapes text inside single quotes.
fn quoted(text: &str) -> String {
    text.replace('\'', r"'\''")
}
