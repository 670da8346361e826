//! Whole commands, run in this process: several at a time, each with its own settings and streams.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::thread;

use tempfile::TempDir;

use super::Context;
use crate::cli::Early;
use crate::error::Kind;
use crate::terminal::{self, Terminal};

/// How a run ended.
struct CommandOutput {
    code: u8,
    stdout: String,
    stderr: String,
}

/// Runs a command line, and collects what it writes. Words are separated by blanks.
fn run(line: &str) -> CommandOutput {
    run_words(line.split_whitespace())
}

fn run_words<'a>(words: impl Iterator<Item = &'a str>) -> CommandOutput {
    let args = ["trayscan"].into_iter().chain(words);
    let args: Vec<OsString> = args.map(OsString::from).collect();
    let early = Early::scan(&args);
    terminal::install_logger();
    let terminal = Terminal::captured(early.message_format);
    let _entered = terminal.enter();
    let code = crate::run_with(&Context::new(terminal.clone()), &args, early);
    let [stdout, stderr] = terminal.written();
    CommandOutput {
        code,
        stdout,
        stderr,
    }
}

/// A folder with a config file.
struct Home(TempDir);

impl Home {
    fn with(config: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("config.toml"), config).expect("a config file");
        Self(folder)
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_string_lossy().into_owned()
    }

    /// Runs a command line with the config file.
    fn run(&self, line: &str) -> CommandOutput {
        run(&format!("{line} --config={}", self.path("config.toml")))
    }
}

#[test]
fn an_export_writes_batches_to_stdout_and_the_rest_to_stderr() {
    let home = Home::with("");
    let ended = home.run("export --sandbox -f csv --fields batch_id --limit 2");
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    assert_eq!(ended.stdout.lines().count(), 3, "{}", ended.stdout);
    assert!(ended.stdout.starts_with("batch_id\n"));
    let last = ended.stderr.lines().last().unwrap_or_default();
    assert!(
        last.starts_with("2 batches (all dates, v2, 2 requests)"),
        "{last}"
    );
    assert!(last.contains(" to standard output in "), "{last}");
}

#[test]
fn runs_with_different_settings_do_not_mix() {
    let homes = [
        Home::with("[profiles.default]\napi = \"v1\"\nretries = 1\n"),
        Home::with("[profiles.default]\napi = \"v2\"\nretries = 2\n"),
    ];
    let export = |home: &Home| home.run("export --sandbox -f ndjson -v");
    let show = |home: &Home| home.run("config show");
    let [(one, first), (other, second)] = thread::scope(|scope| {
        let runs = homes
            .each_ref()
            .map(|home| scope.spawn(move || (export(home), show(home))));
        runs.map(|run| run.join().expect("no panic"))
    });
    assert_eq!(one.stdout.lines().count(), 250, "{}", one.stderr);
    assert_eq!(one.stdout, other.stdout);
    for (ended, own, others) in [(&one, ", v1, ", ", v2, "), (&other, ", v2, ", ", v1, ")] {
        assert!(
            ended.stderr.contains("info: requesting all dates"),
            "{}",
            ended.stderr
        );
        assert!(ended.stderr.contains(own), "{}", ended.stderr);
        assert!(!ended.stderr.contains(others), "{}", ended.stderr);
        assert_eq!(
            ended.stderr.matches("250 batches").count(),
            1,
            "{}",
            ended.stderr
        );
    }
    for (shown, api, retries) in [(first, "v1", 1), (second, "v2", 2)] {
        for (key, value) in [("api", api.to_owned()), ("retries", retries.to_string())] {
            let row = shown
                .stdout
                .lines()
                .find(|line| line.starts_with(&format!("{key} ")));
            let row: Vec<&str> = row.unwrap_or_default().split_whitespace().collect();
            assert_eq!(row[..2], [key, &*value], "{}", shown.stdout);
        }
    }
}

#[test]
fn verbosity_is_that_of_each_run() {
    let home = Home::with("");
    let loud = home.run("summary --sandbox -vv");
    assert!(loud.stderr.contains("debug: "), "{}", loud.stderr);
    let usual = home.run("summary --sandbox");
    assert_eq!(usual.stderr.lines().count(), 1, "{}", usual.stderr);
    let quiet = home.run("summary --sandbox -q");
    assert_eq!((quiet.code, &*quiet.stderr), (0, ""));
    assert_eq!(loud.stdout, quiet.stdout);
}

#[test]
fn commands_follow_each_other_in_one_process() {
    let home = Home::with("");
    let (archive, file, manifest) = (home.path("a.db"), home.path("a.csv"), home.path("m.json"));
    let page = home.path("report.html");
    for line in [
        format!("sync --sandbox {archive}"),
        format!("export --archive {archive} -o {file} --manifest {manifest}"),
        format!("verify {file} --manifest {manifest}"),
        format!("verify {file} --manifest {manifest} --archive {archive}"),
        format!("report --archive {archive} -o {page}"),
        "check --sandbox".to_owned(),
    ] {
        let ended = home.run(&line);
        assert_eq!(ended.code, 0, "{line}: {}", ended.stderr);
    }
    for path in [&archive, &file, &manifest, &page] {
        assert!(Path::new(path).is_file(), "{path}");
    }
    let status = run(&format!("sync --status {archive}"));
    assert!(status.stdout.contains("250"), "{}", status.stdout);
}

#[test]
fn failures_end_with_the_code_of_their_class() {
    let home = Home::with("");
    let (file, folder) = (home.path("a.csv"), home.path("none/a.csv"));
    fs::write(&file, "batch_id\nno-such-batch\n").expect("a file");
    let closed = "--base-url=http://127.0.0.1:1 --client-id=a --client-secret=b --retries=0";
    for (line, kind) in [
        ("export --start never", Kind::Usage),
        ("export --no-such-flag", Kind::Usage),
        ("export --sandbox --parallel 0", Kind::Usage),
        (&format!("export {closed}"), Kind::Unavailable),
        (
            &format!("verify {file} --service --sandbox --fields batch_id"),
            Kind::Protocol,
        ),
        (&format!("export --sandbox -o {folder}"), Kind::Output),
        (
            "export --sandbox --where crop_type=Fig --fail-on-empty",
            Kind::Empty,
        ),
    ] {
        let ended = home.run(line);
        assert_eq!(ended.code, kind.code(), "{line}: {}", ended.stderr);
        assert!(
            ended.stderr.lines().any(|line| line.starts_with("error: ")),
            "{line}: {}",
            ended.stderr
        );
        let json = home.run(&format!("{line} --message-format=json"));
        let last = json.stderr.lines().last().unwrap_or_default();
        let error: serde_json::Value = serde_json::from_str(last).expect("JSON");
        assert_eq!(error["error"]["kind"], kind.name(), "{line}: {last}");
    }
}

#[test]
fn help_and_version_are_printed() {
    let version = run("-V");
    let expected = concat!("trayscan ", env!("CARGO_PKG_VERSION"), "\n");
    assert_eq!((version.code, &*version.stdout), (0, expected));
    let help = run("export --help");
    assert!(help.stdout.contains("--base-url <URL>"), "{}", help.stdout);
    let nothing = run("");
    assert_eq!((nothing.code, &*nothing.stdout), (Kind::Usage.code(), ""));
    assert!(
        nothing.stderr.contains("Usage: trayscan"),
        "{}",
        nothing.stderr
    );
}

#[test]
fn a_value_that_came_only_in_another_spelling_is_a_warning() {
    let home = Home::with("");
    for (condition, is_told) in [
        ("crop_type!=tomato", true),
        ("crop_type=Lettuce, Tomato", true),
        ("crop_type=Lettuce,Tomato", false),
        ("crop_type!=Fig", false),
    ] {
        let config = format!("--config={}", home.path("config.toml"));
        let words = ["summary", "--sandbox", "-q", "--where", condition, &config];
        let ended = run_words(words.into_iter());
        let warning = "warning: no batch has the crop_type `";
        assert_eq!(
            ended.stderr.starts_with(warning),
            is_told,
            "{condition}: {}",
            ended.stderr
        );
        assert_eq!(
            ended.stderr.is_empty(),
            !is_told,
            "{condition}: {}",
            ended.stderr
        );
    }
}

#[test]
fn an_empty_result_is_explained() {
    let home = Home::with("");
    for (line, expected) in [
        (
            "summary --sandbox --where crop_type=Fig",
            "warning: none of the 250 batches matches `--where crop_type=Fig`; the nearest values of crop_type are `Basil`",
        ),
        (
            "summary --sandbox --end 2001",
            "note: the sandbox has batches from November 2023 to October 2026; try `--period 2026-10`\n",
        ),
        (
            "summary --sandbox --end 2001 --fail-on-empty",
            "error: no batch matches the selection\n  hint: range: ",
        ),
    ] {
        let ended = home.run(line);
        assert!(ended.stderr.contains(expected), "{line}: {}", ended.stderr);
    }
}

#[test]
fn an_existing_file_is_kept() {
    let home = Home::with("");
    let file = home.path("a.csv");
    fs::write(&file, "old").expect("a file");
    let ended = home.run(&format!("export --sandbox -o {file} --no-clobber"));
    assert_eq!(ended.code, Kind::Output.code(), "{}", ended.stderr);
    assert_eq!(fs::read_to_string(&file).expect("a file"), "old");
}

#[test]
fn each_run_reads_its_config_file_once() {
    let home = Home::with("[profiles.default]\nclient_secret = \"hunter2-and-more\"\n");
    let (file, archive) = (home.path("a.csv"), home.path("a.db"));
    assert_eq!(home.run(&format!("sync --sandbox {archive}")).code, 0);
    for line in [
        format!("export --sandbox -o {file}"),
        // The output exists now, so the secret file is looked for.
        format!("export --sandbox -o {file}"),
        format!("export --archive {archive} -o {file}"),
        format!("report --archive {archive}"),
    ] {
        let ended = home.run(&line);
        assert_eq!(ended.code, 0, "{line}: {}", ended.stderr);
        // A file with a secret that others can read gives a warning each time it is read.
        let warnings = ended.stderr.matches("other users can read").count();
        let expected = usize::from(cfg!(unix));
        assert_eq!(warnings, expected, "{line}: {}", ended.stderr);
        assert!(!ended.stderr.contains("hunter2"));
    }
}
