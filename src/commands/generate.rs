//! `man`: man pages, generated from the clap types.
//!
//! What the clap types do not know is listed here: variables without an option, files, and related pages. Pages
//! of sections 5 and 7 are written by hand, in `man/`.

use anyhow::Context as _;
use clap_mangen::Man;
use roff::{Roff, bold, roman};

use crate::batch::COLUMNS;
use crate::cli::{self, TOPICS};
use crate::error::Kind;
use crate::server::faults;
use crate::text::join;

/// Returns the man page of a topic or a subcommand, or of the whole program.
pub(crate) fn man_page(page: Option<&str>) -> anyhow::Result<String> {
    let topic = TOPICS.iter().find(|(topic, _)| Some(*topic) == page);
    topic.map_or_else(|| command_page(page), |(_, text)| Ok((*text).to_owned()))
}

fn command_page(subcommand: Option<&str>) -> anyhow::Result<String> {
    let mut program = cli::command();
    // Global flags and full names ("trayscan serve") reach the subcommands only when built.
    program.build();
    let command = match subcommand {
        None => program,
        Some(name) => {
            let command = program.find_subcommand(name);
            command
                .with_context(|| format!("no command `{name}`"))?
                .clone()
        }
    };
    let examples = command.get_after_help().map(ToString::to_string);
    let title = command.get_display_name().unwrap_or("trayscan").to_owned();
    let mut environment = Vec::new();
    collect_variables(&command, &mut environment);
    environment.extend(applying(&VARIABLES, subcommand));
    let nested = nested_commands(&command);
    let usage = command.clone().render_usage().to_string();
    let command = command.mut_args(name_aliases);
    // A list of its own is easier to read than one inside an option.
    let command = match subcommand {
        Some("serve") => command.mut_arg("faults", |fault| fault.long_help(faults::ABOUT)),
        Some("export") => command.mut_arg("fields", |fields| fields.long_help(None::<&str>)),
        _ => command,
    };
    let man = Man::new(command)
        .title(title.to_uppercase())
        .source(concat!("trayscan ", env!("CARGO_PKG_VERSION")));

    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    page.extend(synopsis(&usage).into_bytes());
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if subcommand.is_none() {
        man.render_subcommands_section(&mut page)?;
    }
    let mut page = String::from_utf8(page).context("a man page is not UTF-8")?;
    // Only the commands of the program have pages of their own.
    if subcommand.is_some() && !nested.is_empty() {
        page += &definitions("SUBCOMMANDS", nested.into_iter());
    }
    if subcommand == Some("serve") {
        page += &definitions("FAULTS", faults::spellings());
    }
    if subcommand == Some("export") {
        let fields = COLUMNS
            .iter()
            .map(|column| (column.name.to_owned(), column.label));
        page += &definitions("FIELDS (WITH THEIR HEADINGS IN TABLES)", fields);
    }
    page += &definitions("EXIT STATUS", exit_codes());
    page += &definitions("ENVIRONMENT", environment.into_iter());
    let files = applying(&FILES, subcommand);
    if !files.is_empty() {
        page += &definitions("FILES", files.into_iter());
    }
    if let Some(examples) = examples {
        page += &verbatim("EXAMPLES", examples.trim_start_matches("Examples:\n"));
    }
    page += &see_also(subcommand);
    Ok(page)
}

/// Returns the synopsis, as in the help.
fn synopsis(usage: &str) -> String {
    let mut section = Roff::new();
    section.control("SH", ["SYNOPSIS"]);
    for line in usage.trim_start_matches("Usage:").lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        let is_name = |word: &&&str| !word.starts_with(['[', '<']);
        let count = words.iter().take_while(is_name).count();
        section.text([
            bold(words[..count].join(" ")),
            roman(format!(" {}", words[count..].join(" "))),
        ]);
    }
    section.to_roff()
}

/// Adds other names of a flag to its help, as in the help of the program.
fn name_aliases(arg: clap::Arg) -> clap::Arg {
    let aliases = arg.get_visible_aliases().unwrap_or_default();
    let aliases = join(aliases.iter().map(|name| format!("--{name}")), ", ");
    if aliases.is_empty() {
        return arg;
    }
    let help = arg.get_long_help().or(arg.get_help());
    let help = help.map(ToString::to_string).unwrap_or_default();
    arg.long_help(format!("{help}\n\n[alias: {aliases}]"))
}

/// Returns the subcommands of `command` as they are typed, with what they and their arguments do.
fn nested_commands(command: &clap::Command) -> Vec<(String, String)> {
    let describe = |nested: &clap::Command| {
        let usage = nested.clone().render_usage().to_string();
        let usage = usage.trim_start_matches("Usage: ").to_owned();
        let mut meaning = nested.get_about().map(ToString::to_string);
        let own = |arg: &&clap::Arg| !arg.is_global_set() && arg.get_id() != "help";
        for arg in nested.get_arguments().filter(own) {
            let help = arg.get_help().map(ToString::to_string);
            let line = format!("\n{}: {}", arg, help.unwrap_or_default());
            meaning.get_or_insert_default().push_str(&line);
        }
        (usage, meaning.unwrap_or_default())
    };
    command.get_subcommands().map(describe).collect()
}

/// A term, what it means, and the commands whose pages list it. The page of the program lists all.
type Entry = (&'static str, &'static str, &'static [&'static str]);

/// The commands that connect to the service.
const CLIENTS: &[&str] = &[
    "export", "sync", "summary", "report", "verify", "check", "login",
];
/// The commands that read the config file.
const CONFIGURED: &[&str] = &[
    "export", "sync", "summary", "report", "verify", "check", "login", "config",
];
/// The commands that write or read exports, in files, object storage or PostgreSQL.
const STORING: &[&str] = &["export", "verify"];
/// The commands that write or read object storage.
const OBJECTS: &[&str] = &["export", "summary", "report", "verify"];
/// The commands that write files, other than an archive.
const WRITING: &[&str] = &["export", "summary", "report"];

/// Environment variables that no option has.
const VARIABLES: [Entry; 8] = [
    (
        "XDG_CONFIG_HOME",
        "On Linux, the folder that contains trayscan/config.toml, instead of ~/.config.",
        CONFIGURED,
    ),
    (
        "HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY",
        "The proxy, and the hosts to reach without it, in capitals or lower case. See trayscan-config(5).",
        CLIENTS,
    ),
    (
        "SSL_CERT_FILE, SSL_CERT_DIR",
        "On Linux, certificate authorities to trust instead of the system's. --ca-cert adds one to them.",
        CLIENTS,
    ),
    (
        "AWS_*, GOOGLE_*, AZURE_*",
        "Credentials and addresses of object storage. See trayscan-storage(7).",
        OBJECTS,
    ),
    (
        "PGHOST, PGUSER, PGPASSFILE, PGPASSWORD and others",
        "Defaults for a postgres:// address, as in libpq. See trayscan-storage(7).",
        STORING,
    ),
    (
        "TMPDIR",
        "The folder for temporary files that do not belong beside the output, instead of /tmp.",
        STORING,
    ),
    (
        "SOURCE_DATE_EPOCH",
        "The time of the report, in seconds since 1970, for reproducible output. Later batches are in the future.",
        &["report"],
    ),
    (
        "NO_COLOR",
        "Turns colour off if it is not empty, unless --color always is given.",
        &cli::PAGES,
    ),
];

/// Files that commands read or write, besides those on the command line.
const FILES: [Entry; 9] = [
    (
        "~/.config/trayscan/config.toml",
        "The config file on Linux. On macOS it is ~/Library/Application Support/trayscan/config.toml, on \
         Windows %APPDATA%\\trayscan\\config.toml. `trayscan config path` prints the path. See trayscan-config(5).",
        CONFIGURED,
    ),
    (
        "client secret file",
        "Named by --client-secret-file, TRAYSCAN_CLIENT_SECRET_FILE or client_secret_file. It contains the \
         secret and nothing else. Make it readable only by you (chmod 600).",
        CLIENTS,
    ),
    (
        "config.PROFILE.secret",
        "The secret of a profile, beside the config file. See trayscan-config(5).",
        &["login"],
    ),
    (
        "ARCHIVE",
        "The archive, one SQLite file. A run locks this file; there is no separate lock file. See \
         trayscan-archive(5).",
        &["sync"],
    ),
    (
        "ARCHIVE-journal",
        "Exists while a transaction is open, or after a run was killed. Do not delete it: SQLite uses it to \
         undo the unfinished transaction.",
        &["sync"],
    ),
    (
        ".trayscan-*.tmp, .trayscan-*.part, .trayscan-*.list",
        "Temporary files beside the output. A run removes its own at the end. The next run in the folder \
         removes those of a killed run (on Linux, on local file systems).",
        WRITING,
    ),
    (
        "_manifest.json",
        "The default manifest of an export to one file per value, in the folder before the first \
         placeholder. `verify` reads it from a folder. See trayscan-manifest(5).",
        STORING,
    ),
    (
        "_manifest.json.pending, _SUCCESS",
        "Beside the manifest: the files that a run is about to change, and the marker of --success-marker. \
         See trayscan-formats(7).",
        &["export"],
    ),
    (
        "~/.pgpass",
        "Passwords for PostgreSQL. See trayscan-storage(7).",
        STORING,
    ),
];

/// Returns the entries for the page of `subcommand`.
fn applying(entries: &[Entry], subcommand: Option<&str>) -> Vec<(String, String)> {
    let applies = |commands: &[&str]| subcommand.is_none_or(|name| commands.contains(&name));
    let entries = entries.iter().filter(|(.., commands)| applies(commands));
    let text = |(term, meaning, _): &Entry| ((*term).to_owned(), (*meaning).to_owned());
    entries.map(text).collect()
}

/// Adds the variables that set options of `command` and its subcommands, each once.
fn collect_variables(command: &clap::Command, variables: &mut Vec<(String, String)>) {
    for arg in command.get_arguments() {
        let (Some(variable), Some(long)) = (arg.get_env(), arg.get_long()) else {
            continue;
        };
        let variable = variable.to_string_lossy().into_owned();
        if variables.iter().all(|(known, _)| *known != variable) {
            variables.push((variable, format!("Default of --{long}.")));
        }
    }
    for subcommand in command.get_subcommands() {
        collect_variables(subcommand, variables);
    }
}

/// Returns the section that names related pages.
fn see_also(subcommand: Option<&str>) -> String {
    let related = match subcommand {
        None => "archive(5) config(5) manifest(5) figures(7) formats(7) service(7) storage(7)",
        Some("export") => {
            "sync(1) verify(1) config(5) manifest(5) formats(7) service(7) storage(7)"
        }
        Some("sync") => "export(1) archive(5) config(5) service(7)",
        Some("summary") => "report(1) config(5) figures(7)",
        Some("report") => "summary(1) config(5) figures(7)",
        Some("verify") => "export(1) config(5) manifest(5) formats(7) storage(7)",
        Some("check") => "config(1) login(1) config(5) service(7)",
        Some("serve") => "check(1) archive(5) service(7)",
        Some("login") => "check(1) config(1) config(5)",
        Some("config") => "check(1) login(1) config(5)",
        Some(_) => "",
    };
    let mut pages = match subcommand {
        None => cli::PAGES
            .map(|page| format!("trayscan-{page}(1)"))
            .to_vec(),
        Some(_) => vec!["trayscan(1)".to_owned()],
    };
    let related = related.split_whitespace();
    pages.extend(related.map(|page| format!("trayscan-{page}")));
    let mut section = Roff::new();
    section.control("SH", ["SEE ALSO"]);
    let mut words = Vec::new();
    for (index, page) in pages.iter().enumerate() {
        let (name, number) = page.split_at(page.find('(').unwrap_or(page.len()));
        let end = if index + 1 < pages.len() { ", " } else { "" };
        words.extend([bold(name), roman(format!("{number}{end}"))]);
    }
    section.text(words);
    section.to_roff()
}

/// Returns the exit codes, from the table that the program itself uses.
fn exit_codes() -> impl Iterator<Item = (String, &'static str)> {
    let success = (0, "success; an empty result is a success too");
    let failures = Kind::ALL.map(|kind| (kind.code(), kind.meaning()));
    let all = std::iter::once(success).chain(failures);
    all.map(|(code, meaning)| (code.to_string(), meaning))
}

/// Returns a section of terms and their meanings.
fn definitions<T: Into<String>>(title: &str, entries: impl Iterator<Item = (String, T)>) -> String {
    let mut section = Roff::new();
    section.control("SH", [title]);
    for (term, meaning) in entries {
        section.control("TP", []);
        section.text([bold(term)]);
        for (index, line) in meaning.into().lines().enumerate() {
            if index > 0 {
                section.control("br", []);
            }
            section.text([roman(line)]);
        }
    }
    section.to_roff()
}

/// Returns a section whose lines are kept as they are.
fn verbatim(title: &str, text: &str) -> String {
    let mut section = Roff::new();
    section.control("SH", [title]);
    section.control("nf", []);
    for line in text.lines() {
        section.text([roman(line)]);
    }
    section.control("fi", []);
    section.to_roff()
}
