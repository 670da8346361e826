//! `completions` and `man`: what is made from the clap types.

use anyhow::Context as _;
use clap_complete::Shell;
use clap_mangen::Man;
use roff::{Roff, bold, roman};

use crate::batch::COLUMNS;
use crate::cli;
use crate::error::Kind;
use crate::server::faults;

/// Returns the completion script for `shell`.
pub(crate) fn completions(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut cli::command(), "trayscan", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// Returns the manual page of `subcommand`, or of the whole program.
pub(crate) fn man_page(subcommand: Option<&str>) -> anyhow::Result<String> {
    let mut program = cli::command();
    // Global flags and full names ("trayscan serve") reach the subcommands only when built.
    program.build();
    let command = match subcommand {
        None => program,
        Some(name) => program
            .find_subcommand(name)
            .with_context(|| format!("no command `{name}`"))?
            .clone(),
    };
    let examples = command.get_after_help().map(ToString::to_string);
    let title = command.get_display_name().unwrap_or("trayscan").to_owned();
    let is_serve = subcommand == Some("serve");
    let is_export = subcommand == Some("export");
    // A list of its own is easier to read than one inside an option.
    let command = if is_serve {
        command.mut_arg("faults", |fault| fault.long_help(faults::ABOUT))
    } else if is_export {
        command.mut_arg("fields", |fields| fields.long_help(None::<&str>))
    } else {
        command
    };
    let man = Man::new(command)
        .title(title.to_uppercase())
        .source(concat!("trayscan ", env!("CARGO_PKG_VERSION")));

    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if subcommand.is_none() {
        man.render_subcommands_section(&mut page)?;
    }
    let mut page = String::from_utf8(page).context("a manual page is text")?;
    if is_serve {
        page += &definitions("FAULTS", faults::spellings());
    }
    if is_export {
        let fields = COLUMNS
            .iter()
            .map(|column| (column.name.to_owned(), column.label));
        page += &definitions("FIELDS (WITH THEIR HEADINGS IN TABLES)", fields);
    }
    page += &definitions("EXIT STATUS", exit_codes());
    if let Some(examples) = examples {
        page += &verbatim("EXAMPLES", examples.trim_start_matches("Examples:\n"));
    }
    Ok(page)
}

/// The exit codes, from the table that the program itself uses.
fn exit_codes() -> impl Iterator<Item = (String, &'static str)> {
    let success = (0, "everything that was asked for is in its place");
    let failures = Kind::ALL.map(|kind| (kind.code(), kind.meaning()));
    let all = std::iter::once(success).chain(failures);
    all.map(|(code, meaning)| (code.to_string(), meaning))
}

/// A section of terms and what they mean.
fn definitions(title: &str, entries: impl Iterator<Item = (String, &'static str)>) -> String {
    let mut section = Roff::new();
    section.control("SH", [title]);
    for (term, meaning) in entries {
        section.control("TP", []);
        section.text([bold(term)]);
        section.text([roman(meaning)]);
    }
    section.to_roff()
}

/// A section whose lines stay as they are.
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
