//! Man pages, completions and README agree with the program.
//!
//! `TRAYSCAN_REWRITE=1 cargo test generated` writes `man/` and `completions/` anew.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::harness::{run, trayscan};

fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Returns the text of README, with the bars inside its tables as they are meant.
fn readme() -> String {
    fs::read_to_string(root("README.md"))
        .unwrap()
        .replace("\\|", "|")
}

fn printed(args: &[&str]) -> String {
    let ended = run(args);
    assert_eq!(
        (ended.code, ended.stderr.as_str()),
        (Some(0), ""),
        "{args:?}"
    );
    ended.stdout
}

/// Returns the subcommands, as the help lists them.
fn subcommands() -> Vec<String> {
    let help = printed(&["-h"]);
    let (_, commands) = help.split_once("Commands:\n").unwrap();
    let lines = commands.lines().take_while(|line| !line.is_empty());
    lines
        .map(|line| line.split_whitespace().next().unwrap().to_owned())
        .collect()
}

/// Compares the files of `folder` with what they should be, or writes them.
fn compare(folder: &str, expected: &[(String, String)]) {
    let rewrite = std::env::var_os("TRAYSCAN_REWRITE").is_some();
    for (name, text) in expected {
        let path = root(folder).join(name);
        if rewrite {
            fs::write(&path, text).unwrap();
        }
        let found = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            found == *text,
            "{folder}/{name} has drifted: run `TRAYSCAN_REWRITE=1 cargo test generated`"
        );
    }
    let names: BTreeSet<String> = expected.iter().map(|(name, _)| name.clone()).collect();
    // Pages of other sections are written by hand; `manifest` holds the one on manifests against the program.
    let there: BTreeSet<String> = fs::read_dir(root(folder))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.ends_with(".5") && !name.ends_with(".7"))
        .collect();
    assert_eq!(there, names, "{folder}");
}

#[test]
fn man_pages_are_up_to_date() {
    let mut pages = vec![("trayscan.1".to_owned(), printed(&["man"]))];
    for command in subcommands() {
        pages.push((format!("trayscan-{command}.1"), printed(&["man", &command])));
    }
    compare("man", &pages);
}

#[test]
fn completions_are_up_to_date() {
    let shells = [
        ("bash", "trayscan.bash"),
        ("elvish", "trayscan.elv"),
        ("fish", "trayscan.fish"),
        ("powershell", "_trayscan.ps1"),
        ("zsh", "_trayscan"),
    ];
    let scripts = shells.map(|(shell, name)| (name.to_owned(), printed(&["completions", shell])));
    compare("completions", &scripts);
}

#[test]
fn the_readme_begins_with_the_two_commands() {
    let readme = readme();
    let commands: Vec<&str> = readme
        .lines()
        .take_while(|line| !line.starts_with("## "))
        .filter(|line| line.starts_with("cargo "))
        .collect();
    assert_eq!(
        commands,
        ["cargo run --release -- export --sandbox", "cargo test"]
    );
    let ci = fs::read_to_string(root(".ci/run")).unwrap();
    assert!(
        ci.lines().any(|line| line == "cargo test"),
        "CI runs the same"
    );
}

#[test]
fn the_readme_lists_the_exit_codes_of_the_man_page() {
    let man = printed(&["man"]);
    let (_, section) = man.split_once(".SH \"EXIT STATUS\"\n").unwrap();
    let (section, _) = section.split_once("\n.SH").unwrap();
    let plain = section
        .replace("\\fB", "")
        .replace("\\fR", "")
        .replace("\\-", "-");
    let rows: Vec<String> = plain
        .split(".TP\n")
        .skip(1)
        .map(|entry| {
            let mut lines = entry.lines();
            let (code, meaning) = (lines.next().unwrap(), lines.next().unwrap());
            format!("| {code} | {meaning} |")
        })
        .collect();
    assert_eq!(rows.len(), 15);
    let readme = readme();
    for row in rows {
        assert!(
            readme.lines().any(|line| line == row),
            "README lacks: {row}"
        );
    }
}

#[test]
fn the_export_that_the_readme_shows_is_real() {
    let readme = readme();
    let (_, block) = readme.split_once("$ trayscan export ").unwrap();
    let (command, rest) = block.split_once('\n').unwrap();
    let (shown, _) = rest.split_once("```").unwrap();
    let args: Vec<&str> = std::iter::once("export")
        .chain(command.split_whitespace())
        .collect();
    let ended = run(&args);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.stdout, shown);
}

#[test]
fn the_readme_lists_every_setting() {
    let help = printed(&["export", "--help"]);
    let variables: BTreeSet<&str> = help
        .split(|letter: char| !(letter.is_ascii_uppercase() || letter == '_'))
        .filter(|word| word.starts_with("TRAYSCAN_"))
        .collect();
    assert!(variables.len() > 12);
    let readme = readme();
    for variable in variables {
        assert!(
            readme.contains(&format!("`{variable}`")) || readme.contains(&format!("`{variable}=")),
            "README lacks {variable}"
        );
    }
}

#[test]
fn the_page_on_formats_names_every_format_and_only_flags_that_exist() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("man/trayscan-formats.7");
    let page = fs::read_to_string(path).unwrap().replace("\\-", "-");
    let help = printed(&["export", "--help"]);
    let (_, formats) = help.split_once("[possible values: json,").unwrap();
    let (formats, _) = formats.split_once(']').unwrap();
    let named: BTreeSet<&str> = page
        .split(|letter: char| !letter.is_alphanumeric())
        .collect();
    let formats: Vec<&str> = formats.split(',').map(str::trim).collect();
    assert!(formats.len() > 6, "{formats:?}");
    for format in formats {
        assert!(named.contains(format), "the page lacks {format}");
    }
    let words = page.split(|letter: char| !(letter.is_ascii_lowercase() || letter == '-'));
    let flags: BTreeSet<&str> = words.filter(|word| word.starts_with("--")).collect();
    assert!(flags.len() > 5, "{flags:?}");
    for flag in flags {
        assert!(help.contains(flag), "there is no {flag}");
    }
}

#[test]
fn the_run_that_the_readme_shows_is_real() {
    let readme = readme();
    let (_, block) = readme
        .split_once("$ trayscan serve --client-secret demo\n")
        .unwrap();
    let (shown, _) = block.split_once("```").unwrap();
    let mut child = trayscan(&[
        "serve",
        "--client-secret",
        "demo",
        "--listen",
        "127.0.0.1:0",
    ])
    .stdout(Stdio::piped())
    .spawn()
    .unwrap();
    let count = shown.lines().count();
    let lines = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .take(count);
    let real: String = lines.map(|line| line.unwrap() + "\n").collect();
    child.kill().unwrap();
    child.wait().unwrap();
    let (_, rest) = real.split_once("http://127.0.0.1:").unwrap();
    let port = rest.lines().next().unwrap();
    assert_eq!(real.replace(port, "8080"), shown);
}

#[test]
fn the_readme_names_every_fault() {
    let help = printed(&["serve", "--help"]);
    let (_, faults) = help.split_once("wins.").unwrap();
    let (faults, _) = faults.split_once("Global options:").unwrap();
    let readme = readme();
    // A line that does not begin a fault goes on with the one before it.
    let is_name = |line: &&str| line.starts_with("          ") && !line.starts_with("           ");
    let lines = faults.lines().filter(is_name);
    let mut count = 0;
    for name in lines.filter_map(|line| line.split_whitespace().next()) {
        count += 1;
        assert!(
            readme.contains(&format!("`{name}`")),
            "README lacks the fault {name}"
        );
    }
    assert_eq!(count, 27);
}
