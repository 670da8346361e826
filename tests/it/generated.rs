//! Man pages, completions and README agree with the program.
//!
//! `TRAYSCAN_REWRITE=1 cargo test generated` rewrites `completions/` and the pages of section 1 in `man/`. The
//! pages of sections 5 and 7, and the README, are written by hand and checked here.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::BufRead as _;
use std::path::{Path, PathBuf};

use rusqlite::Connection;
use serde_json::Value;
use tempfile::TempDir;

use crate::harness::{Run, Server, Service as _, run, trayscan};

fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Returns the README with the escaped bars in its tables unescaped.
fn readme() -> String {
    fs::read_to_string(root("README.md"))
        .unwrap()
        .replace("\\|", "|")
}

/// Returns the names of all man pages, such as `trayscan.1`.
fn pages() -> Vec<String> {
    let entries = fs::read_dir(root("man")).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// Returns whether a page is written by hand.
fn is_handwritten(page: &str) -> bool {
    !page.ends_with(".1")
}

/// Returns a man page as plain text, without roff fonts and escapes.
fn page(name: &str) -> String {
    let mut text = fs::read_to_string(root("man").join(name)).unwrap();
    for (escape, plain) in [
        ("\\%", ""),
        ("\\&", ""),
        ("\\fB", ""),
        ("\\fI", ""),
        ("\\fR", ""),
        ("\\-", "-"),
        ("\\(aq", "'"),
        ("\\(ti", "~"),
    ] {
        text = text.replace(escape, plain);
    }
    text
}

/// Returns the part of a page between the heading `title` and the next heading of that level.
fn section<'a>(page: &'a str, title: &str) -> &'a str {
    let (_, after) = page
        .split_once(&format!("{title}\n"))
        .unwrap_or_else(|| panic!("no {title}"));
    let level = title.split(' ').next().unwrap();
    let end = after.find(&format!("\n{level} ")).unwrap_or(after.len());
    &after[..end]
}

/// Returns all words of a text that could be identifiers.
fn identifiers(text: &str) -> BTreeSet<&str> {
    text.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'))
        .collect()
}

/// Returns the long flags in a text, except those of other programs.
fn flags(text: &str) -> BTreeSet<&str> {
    const OF_CARGO: [&str; 4] = ["--release", "--locked", "--path", "--features"];
    text.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '-'))
        .filter(|word| {
            let name = word.strip_prefix("--");
            name.is_some_and(|name| name.starts_with(|letter: char| letter.is_ascii_lowercase()))
        })
        .filter(|flag| !OF_CARGO.contains(flag))
        .collect()
}

/// Returns the help of all commands.
fn all_help() -> String {
    let mut help = String::new();
    for command in subcommands() {
        help += &printed(&[&command, "--help"]);
    }
    for command in ["path", "show", "init"] {
        help += &printed(&["config", command, "--help"]);
    }
    help
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

/// Compares the files in `folder` with `expected`, or rewrites them.
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
    let there: BTreeSet<String> = fs::read_dir(root(folder))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| folder != "man" || !is_handwritten(name))
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

#[cfg(unix)]
#[test]
fn the_config_file_of_the_packages_is_up_to_date() {
    let folder = crate::harness::Folder::new();
    let path = folder.name("config.toml");
    trayscan(&["config", "init", "--config", &path])
        .output()
        .expect(0);
    let text = fs::read_to_string(path).unwrap();
    compare("packaging/examples", &[("config.toml".to_owned(), text)]);
}

#[test]
fn the_readme_begins_with_the_two_commands() {
    let readme = readme();
    let commands: Vec<&str> = readme
        .lines()
        .take_while(|line| !line.starts_with("## "))
        .filter(|line| line.starts_with("cargo "))
        .collect();
    assert_eq!(commands, ["cargo run -- export --sandbox", "cargo test"]);
    let ci = fs::read_to_string(root(".ci/run")).unwrap();
    assert!(
        ci.lines().any(|line| line == "cargo test"),
        "CI runs the same"
    );
}

#[test]
fn the_readme_lists_the_exit_codes_of_the_man_page() {
    let man = printed(&["man"]);
    let entries = section(&man, ".SH \"EXIT STATUS\"").split(".TP\n").skip(1);
    let codes: BTreeMap<String, String> = entries
        .map(|entry| {
            let (code, meaning) = entry.split_once('\n').unwrap();
            let meaning = meaning.lines().next().unwrap().replace("\\-", "-");
            (code.replace("\\fB", "").replace("\\fR", ""), meaning)
        })
        .collect();
    assert_eq!(codes.len(), 16);
    let readme = readme();
    let (_, table) = readme.split_once("## Exit codes\n").unwrap();
    let (table, _) = table.split_once("\n## ").unwrap();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| "));
    let listed: BTreeMap<String, String> = rows
        .filter_map(|row| row.trim_end_matches(" |").split_once(" | "))
        .filter(|(code, _)| code.parse::<u8>().is_ok())
        .map(|(code, meaning)| (code.to_owned(), meaning.to_owned()))
        .collect();
    assert_eq!(listed, codes);
}

#[test]
fn the_export_in_the_readme_is_real() {
    let readme = readme();
    let (_, block) = readme.split_once("$ trayscan export ").unwrap();
    let (command, rest) = block.split_once('\n').unwrap();
    let (shown, _) = rest.split_once("```").unwrap();
    let args: Vec<&str> = std::iter::once("export")
        .chain(command.split_whitespace())
        .collect();
    let ended = run(&args).expect(0);
    assert_eq!(ended.stdout, shown);
}

#[test]
fn the_settings_page_lists_every_variable_and_key() {
    let page = page("trayscan-config.5");
    let words = identifiers(&page);
    let help = all_help();
    let variables: BTreeSet<&str> = identifiers(&help)
        .into_iter()
        .filter(|word| word.starts_with("TRAYSCAN_"))
        .collect();
    assert!(variables.len() > 12, "{variables:?}");
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("config.toml");
    run(&["config", "init", "--config", path.to_str().unwrap()]).expect(0);
    let config = fs::read_to_string(path).unwrap();
    let keys: BTreeSet<&str> = config
        .lines()
        .filter_map(|line| line.trim_start_matches("# ").split_once(" = "))
        .map(|(key, _)| key)
        .filter(|key| !key.contains(' '))
        .collect();
    assert!(keys.len() > 15, "{keys:?}");
    for name in variables.into_iter().chain(keys) {
        assert!(words.contains(name), "trayscan-config(5) lacks {name}");
    }
}

#[test]
fn the_archive_page_lists_every_table_and_column() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("batches.db");
    run(&["sync", "--sandbox", path.to_str().unwrap()]).expect(0);
    let page = page("trayscan-archive.5");
    let db = Connection::open(path).unwrap();
    let pragma = |name: &str| -> i64 {
        db.query_row(&format!("PRAGMA {name}"), [], |row| row.get(0))
            .unwrap()
    };
    for pragma in [
        format!("application_id = {:#x}", pragma("application_id")),
        format!("user_version = {}", pragma("user_version")),
    ] {
        assert!(page.contains(&pragma), "the page lacks {pragma}");
    }
    let mut rows = db
        .prepare(
            "SELECT schema.type, schema.name, columns.name FROM sqlite_schema AS schema,
                 pragma_table_info(schema.name) AS columns WHERE schema.type IN ('table', 'view')",
        )
        .unwrap();
    let columns = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)));
    let columns: Vec<(String, String, String)> =
        columns.unwrap().collect::<Result<_, _>>().unwrap();
    assert!(columns.len() > 80, "{columns:?}");
    for (kind, name, column) in columns {
        let place = match kind.as_str() {
            "table" => section(&page, &format!(".SS \"Table {name}\"")),
            _ => &page,
        };
        let words = identifiers(place);
        assert!(words.contains(column.as_str()), "{name} lacks {column}");
        assert!(
            identifiers(&page).contains(name.as_str()),
            "the page lacks {name}"
        );
    }
}

#[test]
fn the_formats_page_lists_every_format() {
    let page = page("trayscan-formats.7");
    let help = printed(&["export", "--help"]);
    let (_, formats) = help.split_once("[possible values: json,").unwrap();
    let (formats, _) = formats.split_once(']').unwrap();
    let formats: Vec<&str> = formats.split(',').map(str::trim).collect();
    assert!(formats.len() > 6, "{formats:?}");
    for format in formats {
        assert!(
            identifiers(&page).contains(format),
            "the page lacks {format}"
        );
    }
    let man = printed(&["man", "export"]);
    let (_, fields) = man.split_once(".SH \"FIELDS").unwrap();
    let (fields, _) = fields.split_once("\n.SH").unwrap();
    let fields = fields.split(".TP\n\\fB").skip(1);
    let fields: Vec<&str> = fields
        .map(|field| field.split('\\').next().unwrap())
        .collect();
    assert_eq!(fields.len(), 18);
    for field in fields {
        assert!(identifiers(&page).contains(field), "the page lacks {field}");
    }
}

#[test]
fn the_service_page_lists_every_fault_and_question() {
    let page = page("trayscan-service.7");
    let man = printed(&["man", "serve"]).replace("\\-", "-");
    let faults = section(&man, ".SH FAULTS").split(".TP\n\\fB").skip(1);
    let faults: Vec<&str> = faults
        .map(|fault| fault.split("\\fR").next().unwrap())
        .collect();
    assert_eq!(faults.len(), 27);
    let table = section(&page, ".SS Faults");
    let cells: BTreeSet<&str> = table
        .lines()
        .flat_map(|line| line.split('\t').next().unwrap().split(", "))
        .collect();
    for fault in faults {
        assert!(cells.contains(fault), "the page lacks the fault {fault}");
    }
    let probed = run(&["check", "--sandbox", "--probe", "-f", "json"]);
    let probed: Value = probed.json();
    let questions = probed["probe"].as_array().unwrap();
    assert_eq!(questions.len(), 30);
    for question in questions {
        let id = question["id"].as_str().unwrap();
        assert!(identifiers(&page).contains(id), "the page lacks {id}");
    }
}

#[test]
fn the_figures_page_lists_every_key() {
    let page = page("trayscan-figures.7");
    let summary = run(&["summary", "--sandbox", "-f", "json"]);
    let summary: Value = summary.json();
    let mut keys = BTreeSet::new();
    let total = &summary["total"];
    let group = &summary["groups"][0];
    for part in [
        &summary,
        &summary["range"],
        &summary["newest_step"],
        &summary["sparkline"],
        group,
        total,
        &total["usable_rate"],
    ] {
        keys.extend(part.as_object().unwrap().keys());
    }
    assert!(keys.len() > 30, "{keys:?}");
    for key in keys {
        assert!(
            identifiers(&page).contains(key.as_str()),
            "the page lacks {key}"
        );
    }
}

/// Fails if `text` does not name every key of these objects.
fn assert_names_keys(text: &str, objects: &[&Value]) {
    let words = identifiers(text);
    let keys = objects
        .iter()
        .flat_map(|object| object.as_object().unwrap().keys());
    for key in keys {
        assert!(words.contains(key.as_str()), "{key} is not described");
    }
}

#[test]
fn the_keys_of_json_lists_are_described() {
    let folder = TempDir::new().unwrap();
    let archive = folder.path().join("batches.db");
    let archive = archive.to_str().unwrap();
    run(&["sync", "--sandbox", "-q", archive]).expect(0);
    let page = page("trayscan-archive.5");
    let status: Value = run(&["sync", archive, "--status", "-f", "json"]).json();
    let intervals = section(&page, ".SS \"How to notice that runs fail\"");
    assert_names_keys(intervals, &[&status, &status["covered"][0]]);
    let (_, runs) = page.split_once(".SS \"Table runs\"").unwrap();
    let mut last_run = status["runs"][0].clone();
    // Described with the status: the table has the kind instead.
    last_run.as_object_mut().unwrap().remove("full").unwrap();
    assert_names_keys(runs, &[&last_run]);
    let changes: Value = run(&["sync", archive, "--changes", "-f", "json"]).json();
    assert_names_keys(section(&page, ".SS \"What changed\""), &[&changes[0]]);
    let check: Value = run(&["check", "--sandbox", "--probe", "-f", "json"]).json();
    let help = printed(&["check", "--help"]);
    assert_names_keys(&help, &[&check, &check["steps"][0]]);
    let verified: Value = run(&["verify", archive, "-f", "json"]).json();
    assert_names_keys(&printed(&["verify", "--help"]), &[&verified]);
}

#[test]
fn the_settings_page_lists_the_keys_of_results() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (archive, secret_file, config) = (path("a.db"), path("secret"), path("config.toml"));
    let server = Server::start(&[]);
    let [base_url, id, secret] = server.access();
    fs::write(&secret_file, secret).unwrap();
    let login = [
        "login",
        "--config",
        &config,
        "--base-url",
        &base_url,
        "--client-id",
        &id,
        "--client-secret-file",
        &secret_file,
    ];
    let page = page("trayscan-config.5");
    let described = section(&page, ".SH MESSAGES");
    for args in [
        &["export", "--sandbox", "-o", &path("a.csv")][..],
        &["export", "--sandbox", "--dry-run"],
        &["summary", "--sandbox", "--fail-on", "down"],
        &["report", "--sandbox", "-o", &path("a.html")],
        &["sync", "--sandbox", &archive],
        &["sync", "--changes", &archive],
        &login,
        // With the settings that were just saved.
        &["sync", "--rebind", "--config", &config, &archive],
    ] {
        let args = [args, &["--message-format", "json"]].concat();
        let ended = run(&args);
        let last = ended.stderr.lines().last().unwrap();
        let last: Value = serde_json::from_str(last).unwrap();
        let result = &last["result"];
        assert!(result["seconds"].is_number(), "{args:?}: {ended:?}");
        assert_names_keys(described, &[result]);
    }
}

#[test]
fn handwritten_pages_mention_only_existing_flags() {
    let help = all_help();
    let known = flags(&help);
    let by_hand = pages().into_iter().filter(|name| is_handwritten(name));
    let mut texts: Vec<(String, String)> =
        by_hand.map(|name| (name.clone(), page(&name))).collect();
    // Flags of another program.
    let readme = readme().replace("systemctl enable --now", "");
    texts.push(("README.md".to_owned(), readme));
    for (name, text) in texts {
        let flags = flags(&text);
        assert!(flags.len() > 1, "{name}: {flags:?}");
        for flag in flags {
            assert!(known.contains(flag), "{name} names {flag}");
        }
    }
}

#[test]
fn handwritten_pages_have_the_usual_sections() {
    for name in pages().iter().filter(|name| is_handwritten(name)) {
        let text = page(name);
        let title = name.rsplit_once('.').unwrap().0;
        assert!(
            section(&text, ".SH NAME").starts_with(&format!("{title} - ")),
            "{name}"
        );
        for title in [
            ".SH SYNOPSIS",
            ".SH DESCRIPTION",
            ".SH EXAMPLES",
            ".SH \"SEE ALSO\"",
        ] {
            assert!(!section(&text, title).is_empty(), "{name}: {title}");
        }
        let version = format!("\"trayscan {}\"", env!("CARGO_PKG_VERSION"));
        let header = text.lines().find(|line| line.starts_with(".TH ")).unwrap();
        assert!(header.ends_with(&version), "{name}: {header}");
    }
}

#[test]
fn every_referenced_page_exists() {
    let pages = pages();
    let mut texts: Vec<(String, String)> = pages
        .iter()
        .map(|name| (name.clone(), page(name)))
        .collect();
    texts.push(("README.md".to_owned(), readme()));
    let mut count = 0;
    for (name, text) in texts {
        // Such as `trayscan-config(5)`.
        let is_part = |letter: char| letter.is_ascii_alphanumeric() || "-()".contains(letter);
        for word in text.split(|letter| !is_part(letter)) {
            let Some((title, rest)) = word.trim_start_matches('(').split_once('(') else {
                continue;
            };
            let number = rest.split(')').next().unwrap();
            if title.starts_with("trayscan") && number.parse::<u8>().is_ok() {
                count += 1;
                let page = format!("{title}.{number}");
                assert!(pages.contains(&page), "{name} refers to {page}");
            }
        }
    }
    assert!(count > 60, "{count}");
    let readme = readme();
    for name in pages.iter().filter(|name| is_handwritten(name)) {
        assert!(readme.contains(&format!("(man/{name})")), "{name}");
    }
}

#[test]
fn links_in_the_readme_are_valid() {
    let readme = readme();
    let links: Vec<&str> = readme
        .split("](")
        .skip(1)
        .map(|rest| rest.split(')').next().unwrap())
        .filter(|link| !link.contains("://"))
        .collect();
    assert!(links.len() > 8, "{links:?}");
    for link in links {
        assert!(root(link).exists(), "{link}");
    }
}

#[test]
fn man_pages_format_without_warnings() {
    let groff = |path: &Path| {
        Run::new("groff")
            .args(["-man", "-t", "-K", "utf8", "-T", "utf8", "-ww", "-z"])
            .arg(path)
            .try_raw()
    };
    for name in pages() {
        let Ok(formatted) = groff(&root("man").join(&name)) else {
            eprintln!("skipped: groff is not installed");
            return;
        };
        let warnings = String::from_utf8_lossy(&formatted.stderr);
        assert!(
            formatted.status.success() && warnings.is_empty(),
            "{name}: {warnings}"
        );
    }
}

#[test]
fn the_run_in_the_readme_is_real() {
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
    .start();
    let count = shown.lines().count();
    let lines = child.stdout.take().unwrap().lines().take(count);
    let real: String = lines.map(|line| line.unwrap() + "\n").collect();
    child.kill();
    child.wait();
    let (_, rest) = real.split_once("http://127.0.0.1:").unwrap();
    let port = rest.lines().next().unwrap();
    assert_eq!(real.replace(port, "8080"), shown);
}
