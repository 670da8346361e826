//! Explains mistakes on the command line in the style of all other errors: what is wrong, and what to do next.
//!
//! clap finds the mistake and its kind; the message is written here. clap's own messages have another style, and its
//! suggestions are often wrong.

use std::any::TypeId;
use std::error::Error as _;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command};

use crate::error::Failure;
use crate::terminal::Stop;
use crate::text::{join, nearest};

/// Explains what clap found wrong with `args`, the arguments of `program`.
pub(super) fn explain(error: &clap::Error, args: &[OsString], mut program: Command) -> Stop {
    let styled = || error.render().ansi().to_string();
    if error.kind() == ErrorKind::DisplayVersion {
        let is_long = args.iter().any(|arg| arg == "--version");
        return Stop::Help(version_text(is_long));
    }
    if !error.use_stderr() {
        return Stop::Help(styled());
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return Stop::NoCommand(styled());
    }
    // Global flags and full names ("trayscan export") reach the subcommands only when built.
    program.build();
    let texts: Vec<&str> = args.iter().filter_map(|arg| arg.to_str()).collect();
    // Only the words before an unknown command choose one.
    let unknown = self::texts(error, ContextKind::InvalidSubcommand);
    let end = texts
        .iter()
        .position(|text| unknown.iter().any(|unknown| unknown == text));
    let command = chosen(&program, &texts[..end.unwrap_or(texts.len())]);
    let line = Line {
        program: &program,
        command,
        args: &texts,
        raw: args,
    };
    Stop::Mistake(line.mistake(error))
}

/// Returns the command that `args` choose, as far as they name one.
fn chosen<'a>(program: &'a Command, args: &[&str]) -> &'a Command {
    let mut command = program;
    for word in args.iter().skip(1) {
        if let Some(inner) = command.find_subcommand(word) {
            command = inner;
        }
        if *word == "--" || !command.has_subcommands() {
            break;
        }
    }
    command
}

/// A command line that clap refused.
struct Line<'a> {
    program: &'a Command,
    command: &'a Command,
    /// The arguments that are text, and all of them.
    args: &'a [&'a str],
    raw: &'a [OsString],
}

impl Line<'_> {
    fn mistake(&self, error: &clap::Error) -> Failure {
        let texts = |kind| texts(error, kind);
        let text = |kind| texts(kind).into_iter().next().unwrap_or_default();
        let given = text(ContextKind::InvalidArg);
        let value = text(ContextKind::InvalidValue);
        match error.kind() {
            ErrorKind::InvalidValue if value.is_empty() => {
                self.missing_value(&given, &texts(ContextKind::ValidValue))
            }
            ErrorKind::InvalidValue => {
                self.wrong_choice(&given, &value, &texts(ContextKind::ValidValue))
            }
            ErrorKind::ValueValidation => {
                let expected = error.source().map(ToString::to_string);
                self.wrong_value(&given, &value, &expected.unwrap_or_default())
            }
            ErrorKind::UnknownArgument if given.starts_with('-') => self.unknown_flag(&given),
            ErrorKind::UnknownArgument => self.unknown_word(&given),
            ErrorKind::InvalidSubcommand => {
                self.unknown_command(&text(ContextKind::InvalidSubcommand))
            }
            ErrorKind::MissingSubcommand => Failure::usage("no command was given", self.help()),
            ErrorKind::ArgumentConflict => self.conflict(&given, &texts(ContextKind::PriorArg)),
            ErrorKind::MissingRequiredArgument => self.missing(&texts(ContextKind::InvalidArg)),
            ErrorKind::TooManyValues => {
                Failure::usage(format!("{} takes no value", self.name(&given)), self.help())
            }
            ErrorKind::InvalidUtf8 => {
                let name = self.not_text().unwrap_or("an argument".to_owned());
                Failure::usage(format!("{name} is not text in UTF-8"), self.help())
            }
            _ => Failure::usage(first_paragraph(error), self.help()),
        }
    }

    /// Names the argument or the variable that is not text. A path need not be.
    fn not_text(&self) -> Option<String> {
        let is_path = |arg: &Arg| arg.get_value_parser().type_id() == TypeId::of::<PathBuf>();
        for (place, word) in self.raw.iter().enumerate() {
            if word.to_str().is_some() {
                continue;
            }
            let before = self.raw.get(place.checked_sub(1)?)?.to_string_lossy();
            let flag = self.flag(&word.to_string_lossy());
            let flag = flag.or_else(|| self.flag(&before))?;
            if !is_path(flag) {
                return Some(format!("the value of {}", self.name(&flag.to_string())));
            }
        }
        let is_broken =
            |name: &&OsStr| std::env::var_os(name).is_some_and(|value| value.to_str().is_none());
        let args = self.command.get_arguments().filter(|arg| !is_path(arg));
        let name = args.filter_map(Arg::get_env).find(is_broken)?;
        Some(name.to_string_lossy().into_owned())
    }

    fn missing_value(&self, given: &str, valid: &[String]) -> Failure {
        let hint = match &*valid.join(", ") {
            "" => format!("write `{}`", given.replace(['<', '>'], "")),
            valid => format!("available values: {valid}"),
        };
        Failure::usage(format!("{} needs a value", self.name(given)), hint)
    }

    fn wrong_choice(&self, given: &str, value: &str, valid: &[String]) -> Failure {
        let mistake = self.wrong_value(given, value, &listed(valid, "or"));
        match nearest(value, valid.iter().map(String::as_str)) {
            Some(name) => Failure::usage(mistake.message(), format!("did you mean `{name}`?")),
            None => mistake,
        }
    }

    /// Names the flag or the variable that a value came from, and what the value must be.
    fn wrong_value(&self, given: &str, value: &str, expected: &str) -> Failure {
        let arg = self.arg(given);
        let choices = arg.map(Arg::get_possible_values).unwrap_or_default();
        let choices = choices.iter().filter(|value| !value.is_hide_set());
        let choices: Vec<String> = choices.map(|value| value.get_name().to_owned()).collect();
        let expected = match &*listed(&choices, "or") {
            "" => expected.to_owned(),
            choices => choices.to_owned(),
        };
        let variable = arg.and_then(|arg| self.variable(arg));
        let name = variable.clone().unwrap_or_else(|| self.name(given));
        let message = match quoted(value) {
            Some(value) => format!("{name} is {value}; it must be {expected}"),
            None => format!("{name} must be {expected}"),
        };
        let hint = variable.map_or_else(
            || self.help(),
            |variable| format!("change {variable}, or unset it to use the default"),
        );
        Failure::usage(message, hint)
    }

    fn unknown_flag(&self, given: &str) -> Failure {
        if let Some(mistake) = self.value_with_a_dash(given) {
            return mistake;
        }
        let Some(name) = given.strip_prefix("--") else {
            return self.unknown_letter(given);
        };
        let message = format!("{} has no flag `{given}`", self.command_name());
        let known = longs(self.command);
        if known.iter().any(|known| known == name) {
            let hint = format!("write `{} {given}`", self.command_path());
            return Failure::usage(format!("`{given}` must follow the command"), hint);
        }
        let order = if self.command.has_subcommands() {
            "; write it after the command"
        } else {
            ""
        };
        let hint = match &self.commands_with(name)[..] {
            [] => match nearest(name, known.iter().map(String::as_str)) {
                Some(name) => format!("did you mean `--{name}`?"),
                None => self.help(),
            },
            [one] => format!("`{given}` is a flag of `trayscan {one}`{order}"),
            several => {
                let commands = listed(several, "and");
                format!("`{given}` is a flag of the commands {commands}{order}")
            }
        };
        Failure::usage(message, hint)
    }

    /// Explains a value that clap took for a flag, without quoting it: it may be a secret.
    fn value_with_a_dash(&self, given: &str) -> Option<Failure> {
        let place = self.args.iter().position(|arg| arg.starts_with(given))?;
        let before = self.args.get(place.checked_sub(1)?)?;
        let has_value = match before.strip_prefix("--") {
            Some(long) => long.contains('='),
            None => before.chars().count() > 2,
        };
        let flag = self.flag(before).filter(|_| !has_value)?;
        let needs_value = flag
            .get_num_args()
            .is_some_and(|range| range.min_values() > 0);
        needs_value.then(|| {
            let hint = match *before {
                "--sort" => "for descending order, write `--sort FIELD:desc`".to_owned(),
                before => format!("if the value starts with `-`, write `{before}=VALUE`"),
            };
            Failure::usage(format!("`{before}` needs a value"), hint)
        })
    }

    /// Explains a flag with one dash. clap reads `-since` as the letters of short flags.
    fn unknown_letter(&self, given: &str) -> Failure {
        let known = longs(self.command);
        let meant = self.args.iter().find_map(|word| {
            let name = word.strip_prefix('-')?.split('=').next()?;
            let is_meant = word.starts_with(given) && known.iter().any(|known| known == name);
            is_meant.then_some(name)
        });
        let command = self.command_name();
        match meant {
            Some(name) => Failure::usage(
                format!("{command} has no flag `-{name}`"),
                format!("did you mean `--{name}`?"),
            ),
            None => Failure::usage(format!("{command} has no flag `{given}`"), self.help()),
        }
    }

    /// Returns a flag that took another flag for its value.
    fn flag_without_value(&self) -> Option<&str> {
        let takes_any = |word: &str| {
            let flag = self.flag(word).filter(|_| !word.contains('='));
            flag.is_some_and(Arg::is_allow_hyphen_values_set)
        };
        let mut pairs = self.args.windows(2);
        let pair = pairs.find(|pair| takes_any(pair[0]) && self.flag(pair[1]).is_some())?;
        Some(pair[0])
    }

    fn unknown_word(&self, word: &str) -> Failure {
        if let Some(flag) = self.flag_without_value() {
            let hint = "another flag follows it; a variable between them may be empty";
            return Failure::usage(format!("`{flag}` needs a value"), hint);
        }
        let message = match self.quoted_word(word) {
            Some(word) => format!("unexpected argument {word}"),
            None => "unexpected argument (not shown: it may contain a secret)".to_owned(),
        };
        let place = self.args.iter().position(|arg| *arg == word);
        let before = place.and_then(|place| self.args.get(place.checked_sub(1)?));
        let before = before.copied().unwrap_or_default();
        let flag = self.flag(before);
        let hint = if flag.is_some_and(Arg::is_require_equals_set) {
            format!("write the value with `=`, such as `{before}=true`")
        } else if before.ends_with(',') {
            "write the list without spaces, or in quotes".to_owned()
        } else if word.starts_with(['=', '<', '>', '!', '~']) {
            "put the whole condition in quotes, such as --where 'crop_type = Tomato'".to_owned()
        } else if word.contains(['.', '/', ':'])
            && longs(self.command).iter().any(|long| long == "output")
        {
            "use `-o` to name the output".to_owned()
        } else {
            self.help()
        };
        Failure::usage(message, hint)
    }

    fn unknown_command(&self, word: &str) -> Failure {
        let parent = self.command_path();
        let names: Vec<&str> = self
            .command
            .get_subcommands()
            .map(Command::get_name)
            .collect();
        let meant = match word {
            "get" | "list" | "view" if names.contains(&"show") => Some("show"),
            _ => nearest(word, names.iter().copied()),
        };
        let hint = match meant {
            Some(name) => format!("did you mean `{parent} {name}`?"),
            None => format!("available commands: {}", names.join(", ")),
        };
        let message = match self.quoted_word(word) {
            Some(word) => format!("{} has no command {word}", self.command_name()),
            None => format!("{} has no such command", self.command_name()),
        };
        Failure::usage(message, hint)
    }

    fn conflict(&self, given: &str, others: &[String]) -> Failure {
        let name = self.name(given);
        if others.iter().all(|other| other == given) {
            let message = format!("{name} is given more than once");
            return Failure::usage(message, "keep one of them");
        }
        let others: Vec<String> = others.iter().map(|other| self.name(other)).collect();
        let message = format!("{name} cannot be used with {}", listed(&others, "or"));
        Failure::usage(message, "use only one of them")
    }

    fn missing(&self, names: &[String]) -> Failure {
        let needed: Vec<String> = names.iter().map(|name| self.name(name)).collect();
        let needed = listed(&needed, "and");
        let are = if names.len() > 1 { "are" } else { "is" };
        let is_given = |long: &str| {
            let mut flags = self.args.iter().filter_map(|word| self.flag(word));
            flags.any(|flag| flag.get_long() == Some(long))
        };
        let needs = |(id, long): &&(&str, &str)| {
            names.first().is_some_and(|name| name.contains(id)) && is_given(long)
        };
        match NEEDED_BY.iter().find(needs) {
            Some((_, long)) => Failure::usage(format!("`--{long}` needs {needed}"), self.help()),
            None => Failure::usage(format!("{needed} {are} missing"), self.example()),
        }
    }

    /// Returns whether the flag was given by this long name.
    fn is_typed_in_full(&self, long: &str) -> bool {
        let mut values = self.args.iter().filter_map(|word| word.strip_prefix(long));
        values.any(|value| value.is_empty() || value.starts_with('='))
    }

    /// Returns the flag or argument that clap shows as `given`, such as `--parallel <N>`.
    fn arg(&self, given: &str) -> Option<&Arg> {
        let mut args = self.command.get_arguments();
        args.find(|arg| arg.to_string() == given)
    }

    /// Returns the flag that is typed as `word`, such as `--output`, `--output=a.csv` or `-oa.csv`.
    fn flag(&self, word: &str) -> Option<&Arg> {
        let long = word.strip_prefix("--");
        let long = long.map(|long| long.split_once('=').map_or(long, |(long, _)| long));
        let letter = word
            .strip_prefix('-')
            .and_then(|letters| letters.chars().next());
        self.command.get_arguments().find(|arg| match long {
            Some(long) => {
                let names = arg.get_long_and_visible_aliases();
                names.is_some_and(|names| names.contains(&long))
            }
            None => letter.is_some() && arg.get_short() == letter,
        })
    }

    /// Names a flag as it is typed, and another argument as the help calls it.
    fn name(&self, given: &str) -> String {
        if let Some(long) = self.arg(given).and_then(Arg::get_long) {
            return format!("`--{long}`");
        }
        let bare = given.trim_matches(['<', '>', '[', ']', '.']);
        if bare.starts_with('-') {
            let flags: Vec<String> = bare.split('|').map(|flag| format!("`{flag}`")).collect();
            return listed(&flags, "or");
        }
        bare.to_owned()
    }

    /// Returns the variable that the value of `arg` came from, unless it was typed.
    fn variable(&self, arg: &Arg) -> Option<String> {
        let variable = arg.get_env()?;
        std::env::var_os(variable).filter(|value| !value.is_empty())?;
        let is_typed = self.is_typed_in_full(&format!("--{}", arg.get_long()?));
        (!is_typed).then(|| variable.to_string_lossy().into_owned())
    }

    /// Quotes a word that belongs to no flag, unless it may be a secret.
    fn quoted_word(&self, word: &str) -> Option<String> {
        // `--client-secret = hunter2` leaves the secret over.
        let is_near_secret = self.args.iter().any(|arg| arg.contains("secret"));
        if is_near_secret { None } else { quoted(word) }
    }

    /// Names the other commands that have the flag `name`.
    fn commands_with(&self, name: &str) -> Vec<String> {
        let has = |command: &&Command| longs(command).iter().any(|long| long == name);
        let commands = self.program.get_subcommands().filter(has);
        commands
            .map(|command| command.get_name().to_owned())
            .collect()
    }

    fn command_path(&self) -> &str {
        let name = self.command.get_bin_name();
        name.unwrap_or(self.command.get_name())
    }

    fn command_name(&self) -> String {
        format!("`{}`", self.command_path())
    }

    fn help(&self) -> String {
        format!("see `{} --help`", self.command_path())
    }

    /// Returns the first example of the help, or the usage line.
    fn example(&self) -> String {
        let path = self.command_path();
        let examples = self.command.get_after_help().map(ToString::to_string);
        let example = examples.iter().flat_map(|text| text.lines());
        let example = example.map(str::trim).find(|line| line.starts_with(path));
        if let Some(example) = example {
            return format!("write, for example, `{example}`");
        }
        let usage = self.command.clone().render_usage().to_string();
        format!("write `{}`", usage.trim_start_matches("Usage: "))
    }
}

/// Flags that clap asks for because of another flag, and that other flag.
const NEEDED_BY: [(&str, &str); 3] = [
    ("--state", "lookback"),
    ("--status", "max-age"),
    ("--status", "format"),
];

/// Returns the long names of all flags of `command`.
fn longs(command: &Command) -> Vec<String> {
    let flags = command.get_arguments().filter(|arg| !arg.is_hide_set());
    let names = flags
        .filter_map(Arg::get_long_and_visible_aliases)
        .flatten();
    names.map(str::to_owned).collect()
}

/// Quotes a value, unless it may contain a secret.
fn quoted(value: &str) -> Option<String> {
    const LONGEST: usize = 80;
    // An address may contain a password.
    if value.contains('@') {
        return None;
    }
    let line = value.lines().next().unwrap_or_default();
    let mut shown: String = line.chars().take(LONGEST).collect();
    if shown.len() < value.len() {
        shown.push('…');
    }
    Some(format!("`{shown}`"))
}

/// Writes `a`, `a or b`, `a, b or c`.
fn listed(names: &[String], word: &str) -> String {
    match names {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} {word} {last}", most.join(", ")),
    }
}

fn texts(error: &clap::Error, kind: ContextKind) -> Vec<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(texts)) => texts.clone(),
        _ => Vec::new(),
    }
}

/// Returns what clap itself says, on one line: for kinds of mistakes that trayscan's flags do not allow.
fn first_paragraph(error: &clap::Error) -> String {
    let rendered = error.render().to_string();
    let paragraph = rendered.split("\n\n").next().unwrap_or_default();
    let paragraph = paragraph.strip_prefix("error: ").unwrap_or(paragraph);
    join(paragraph.split_whitespace(), " ")
}

/// Returns what `--version` prints; `-V` prints only the first line.
fn version_text(is_long: bool) -> String {
    let version = concat!("trayscan ", env!("CARGO_PKG_VERSION"), "\n");
    if !is_long {
        return version.to_owned();
    }
    let features = match (cfg!(feature = "cloud"), cfg!(feature = "postgres")) {
        (true, true) => "cloud, postgres",
        (true, false) => "cloud",
        (false, true) => "postgres",
        (false, false) => "none (cloud and postgres are off)",
    };
    let environment = if cfg!(target_env = "musl") {
        "-musl"
    } else if cfg!(target_env = "gnu") {
        "-gnu"
    } else if cfg!(target_env = "msvc") {
        "-msvc"
    } else {
        ""
    };
    let profile = if cfg!(debug_assertions) {
        "debug"
    } else {
        "release"
    };
    let (arch, os) = (std::env::consts::ARCH, std::env::consts::OS);
    format!("{version}features: {features}\nbuild: {arch}-{os}{environment}, {profile}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::parse;
    use crate::terminal::When;

    /// Returns the message and the hint.
    fn mistake(line: &[&str]) -> (String, String) {
        let args = std::iter::once(&"trayscan").chain(line);
        let args: Vec<OsString> = args.map(OsString::from).collect();
        match parse(&args, When::Never) {
            Err(Stop::Mistake(mistake)) => mistake.into_texts(),
            other => panic!("{line:?}: {other:?}"),
        }
    }

    fn check(cases: &[(&[&str], &str, &str)]) {
        for (line, message, hint) in cases {
            let expected = ((*message).to_owned(), (*hint).to_owned());
            assert_eq!(mistake(line), expected, "{line:?}");
        }
    }

    #[test]
    fn unknown_names_are_explained() {
        check(&[
            (
                &["download"],
                "`trayscan` has no command `download`",
                "available commands: export, sync, summary, report, verify, check, serve, login, \
                 config, completions, man",
            ),
            (
                &["config", "shwo"],
                "`trayscan config` has no command `shwo`",
                "did you mean `trayscan config show`?",
            ),
            (
                &["export", "--batch", "1"],
                "`trayscan export` has no flag `--batch`",
                "see `trayscan export --help`",
            ),
            (
                &["export", "--client_id", "x"],
                "`trayscan export` has no flag `--client_id`",
                "did you mean `--client-id`?",
            ),
            (
                &["check", "--where", "x"],
                "`trayscan check` has no flag `--where`",
                "`--where` is a flag of the commands export, summary and report",
            ),
            (
                &["--status"],
                "`trayscan` has no flag `--status`",
                "`--status` is a flag of `trayscan sync`; write it after the command",
            ),
            (
                &["--sandbox", "export"],
                "`--sandbox` must follow the command",
                "write `trayscan export --sandbox`",
            ),
            (
                &["export", "-since", "7d"],
                "`trayscan export` has no flag `-since`",
                "did you mean `--since`?",
            ),
        ]);
    }

    #[test]
    fn wrong_values_are_explained() {
        check(&[
            (
                &["export", "--parallel", "-1"],
                "`--parallel` is `-1`; it must be a whole number, at least 1, such as 4",
                "see `trayscan export --help`",
            ),
            (
                &["export", "--api", "v3"],
                "`--api` is `v3`; it must be auto, v1 or v2",
                "see `trayscan export --help`",
            ),
            (
                &["summary", "--by", "mnth"],
                "`--by` is `mnth`; it must be crop_type, month, week, day or scanned_by_email",
                "did you mean `month`?",
            ),
            (
                &["serve", "--listen", "me:hunter2@host"],
                "`--listen` must be an IP address and a port, such as 127.0.0.1:8080 or [::1]:0",
                "see `trayscan serve --help`",
            ),
            (
                &["serve", "--seed"],
                "`--seed` needs a value",
                "write `--seed S`",
            ),
            (
                &["export", "--api"],
                "`--api` needs a value",
                "available values: auto, v1, v2",
            ),
            (
                &["export", "--start", "--end", "2026-05"],
                "`--start` needs a value",
                "another flag follows it; a variable between them may be empty",
            ),
            (
                &["export", "--end", "-o", "a.csv"],
                "`--end` needs a value",
                "another flag follows it; a variable between them may be empty",
            ),
            (
                &["report", "--title", "-x"],
                "`--title` needs a value",
                "if the value starts with `-`, write `--title=VALUE`",
            ),
            (
                &["export", "--format=csv", "--bogus"],
                "`trayscan export` has no flag `--bogus`",
                "see `trayscan export --help`",
            ),
            (
                &["export", "-fcsv", "-Z"],
                "`trayscan export` has no flag `-Z`",
                "see `trayscan export --help`",
            ),
            (
                &["export", "--sandbox=yes"],
                "`--sandbox` takes no value",
                "see `trayscan export --help`",
            ),
        ]);
    }

    #[test]
    fn unexpected_arguments_are_explained() {
        let hint = |line: &[&str]| mistake(line).1;
        assert_eq!(
            hint(&["export", "--allow-http", "true"]),
            "write the value with `=`, such as `--allow-http=true`"
        );
        assert_eq!(
            hint(&["export", "--fields", "a,", "b"]),
            "write the list without spaces, or in quotes"
        );
        assert_eq!(
            hint(&["export", "--where", "crop_type", "=", "Tomato"]),
            "put the whole condition in quotes, such as --where 'crop_type = Tomato'"
        );
        check(&[
            (
                &["export", "postgres://me:hunter2@host/db"],
                "unexpected argument (not shown: it may contain a secret)",
                "use `-o` to name the output",
            ),
            (
                &["verify", "a", "b"],
                "unexpected argument `b`",
                "see `trayscan verify --help`",
            ),
        ]);
    }

    #[test]
    fn missing_and_contradicting_flags_are_explained() {
        check(&[
            (&["-v"], "no command was given", "see `trayscan --help`"),
            (
                &["sync"],
                "ARCHIVE is missing",
                "write, for example, `trayscan sync batches.db`",
            ),
            (
                &["config", "set"],
                "KEY and VALUE are missing",
                "write `trayscan config set [OPTIONS] <KEY> <VALUE>`",
            ),
            (
                &["completions"],
                "SHELL is missing",
                "write `trayscan completions [OPTIONS] <SHELL>`",
            ),
            (
                &["export", "--lookback", "7d"],
                "`--lookback` needs `--state`",
                "see `trayscan export --help`",
            ),
            (
                &["sync", "a.db", "-f", "csv"],
                "`--format` needs `--status` or `--changes`",
                "see `trayscan sync --help`",
            ),
            (
                &["export", "--archive", "a.db", "--sandbox"],
                "`--archive` cannot be used with `--sandbox`",
                "use only one of them",
            ),
            (
                &["export", "--color=never", "--color=never"],
                "`--color` is given more than once",
                "keep one of them",
            ),
        ]);
    }
}
