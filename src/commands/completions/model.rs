//! What there is to complete, read from the clap types.

use clap::builder::ValueRange;
use clap::{Arg, ArgAction, ValueHint};

use crate::batch::date::period_words;
use crate::batch::{COLUMNS, Column, FieldType};
use crate::cli;
use crate::config::SETTINGS;
use crate::server::faults;
use crate::text::join;

/// A command with its options.
pub(super) struct CommandModel {
    /// Such as `config show`; empty for the program itself.
    pub(super) path: String,
    pub(super) options: Vec<OptionModel>,
    pub(super) positionals: Vec<ValueModel>,
    pub(super) subcommands: Vec<Word>,
}

pub(super) struct OptionModel {
    /// Such as `-o` and `--output`, with aliases.
    pub(super) names: Vec<String>,
    pub(super) help: String,
    pub(super) is_repeatable: bool,
    pub(super) value: Option<ValueModel>,
}

/// A value of an option, or an argument without a name.
pub(super) struct ValueModel {
    /// Such as `FILE`.
    pub(super) name: String,
    pub(super) is_optional: bool,
    /// Whether it must be written as `--option=value`.
    pub(super) needs_equals: bool,
    pub(super) values: ArgValues,
}

/// The values to offer.
#[derive(PartialEq, Eq)]
pub(super) enum ArgValues {
    Nothing,
    Files,
    Folders,
    /// One of these. After a word that ends with `:`, more follows.
    Words(Vec<Word>),
    /// Some of these, separated by commas.
    List(Vec<Word>),
    /// A condition of `--where`.
    Condition,
    /// What this command prints.
    Command(&'static str),
}

/// A word with its meaning, which may be empty.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) word: String,
    pub(super) help: String,
}

impl Word {
    fn new(word: impl Into<String>, help: impl Into<String>) -> Self {
        let (word, help) = (word.into(), help.into());
        Self { word, help }
    }
}

/// Lists the words without their meanings.
pub(super) fn plain(words: &[Word]) -> String {
    join(words.iter().map(|word| &word.word), " ")
}

/// Returns the fields for `--where`: those that are compared with a value, and those that are true or false.
pub(super) fn condition_fields() -> [String; 2] {
    [false, true].map(|is_boolean| {
        let columns = COLUMNS.iter();
        let columns = columns.filter(|column| (column.kind == FieldType::Boolean) == is_boolean);
        join(columns.map(|column| column.name), " ")
    })
}

/// Returns all commands, the program itself first.
pub(super) fn commands() -> Vec<CommandModel> {
    let mut program = cli::command();
    // Global options reach the subcommands only when built.
    program.build();
    let mut commands = Vec::new();
    add(&program, "", &mut commands);
    commands
}

fn add(command: &clap::Command, path: &str, commands: &mut Vec<CommandModel>) {
    let shown = command.get_arguments().filter(|arg| !arg.is_hide_set());
    let (positionals, options): (Vec<&Arg>, Vec<&Arg>) = shown.partition(|arg| arg.is_positional());
    let subcommands = command.get_subcommands();
    let subcommands = subcommands.filter(|subcommand| !subcommand.is_hide_set());
    let subcommands: Vec<&clap::Command> = subcommands.collect();
    let word = |command: &clap::Command| Word::new(command.get_name(), text(command.get_about()));
    commands.push(CommandModel {
        path: path.to_owned(),
        options: options.into_iter().map(option).collect(),
        positionals: positionals.into_iter().map(value).collect(),
        subcommands: subcommands.iter().copied().map(word).collect(),
    });
    for subcommand in subcommands {
        let path = format!("{path} {}", subcommand.get_name());
        add(subcommand, path.trim_start(), commands);
    }
}

fn option(arg: &Arg) -> OptionModel {
    let shorts = arg.get_short_and_visible_aliases().unwrap_or_default();
    let longs = arg.get_long_and_visible_aliases().unwrap_or_default();
    let shorts = shorts.into_iter().map(|short| format!("-{short}"));
    let longs = longs.into_iter().map(|long| format!("--{long}"));
    OptionModel {
        names: shorts.chain(longs).collect(),
        help: text(arg.get_help()),
        is_repeatable: matches!(arg.get_action(), ArgAction::Append | ArgAction::Count),
        value: arg.get_action().takes_values().then(|| value(arg)),
    }
}

fn value(arg: &Arg) -> ValueModel {
    let count = arg.get_num_args().unwrap_or(ValueRange::SINGLE);
    ValueModel {
        name: value_name(arg),
        is_optional: count.min_values() == 0 || arg.is_positional() && !arg.is_required_set(),
        needs_equals: arg.is_require_equals_set(),
        values: values(arg),
    }
}

fn value_name(arg: &Arg) -> String {
    let names = arg.get_value_names().unwrap_or_default();
    names.first().map_or_else(String::new, ToString::to_string)
}

fn values(arg: &Arg) -> ArgValues {
    let possible = arg.get_possible_values();
    if !possible.is_empty() {
        let shown = possible.iter().filter(|value| !value.is_hide_set());
        let words = shown.map(|value| Word::new(value.get_name(), text(value.get_help())));
        return match arg.get_value_delimiter() {
            Some(_) => ArgValues::List(words.collect()),
            None => ArgValues::Words(words.collect()),
        };
    }
    match (arg.get_value_hint(), arg.get_id().as_str()) {
        (ValueHint::FilePath | ValueHint::AnyPath, _) => ArgValues::Files,
        (ValueHint::DirPath, _) => ArgValues::Folders,
        (_, "fields") => ArgValues::List([fields("", ""), fields("-", "")].concat()),
        (_, "sort") => ArgValues::List([fields("", ""), fields("", ":desc")].concat()),
        (_, "key") => ArgValues::Words(keys()),
        (_, "profile") => ArgValues::Command("profiles"),
        (_, "time_zone") => ArgValues::Command("time-zones"),
        (_, "faults") => {
            let words = faults::words().map(|(word, help)| Word::new(word, help));
            ArgValues::Words(words.collect())
        }
        _ => match value_name(arg).as_str() {
            "EXPR" => ArgValues::Condition,
            "DATE" | "PERIOD" => {
                ArgValues::Words(period_words().map(|word| Word::new(word, "")).collect())
            }
            _ => ArgValues::Nothing,
        },
    }
}

/// Returns the keys of the config file that `config set` accepts.
fn keys() -> Vec<Word> {
    let keys = SETTINGS.iter().filter(|info| info.key != "client_secret");
    let keys = keys.map(|info| Word::new(info.key, info.help));
    let default = Word::new("default_profile", "Profile to use without --profile");
    keys.chain([default]).collect()
}

/// Returns the fields, with this before and after each.
fn fields(before: &str, after: &str) -> Vec<Word> {
    let word = |column: &Column| Word::new(format!("{before}{}{after}", column.name), column.label);
    COLUMNS.iter().map(word).collect()
}

fn text(styled: Option<&clap::builder::StyledStr>) -> String {
    styled.map(ToString::to_string).unwrap_or_default()
}
