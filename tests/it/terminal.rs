//! Output on a terminal: a table that fits, and progress that is shown nowhere else.

use std::path::Path;

use tempfile::TempDir;
use unicode_width::UnicodeWidthStr as _;

use crate::harness::{Run, Server, run, trayscan};

/// Runs `line` on a terminal with this number of columns; `None` if `script` is not installed.
///
/// In `line`, `$T` is the program.
pub(crate) fn on_terminal(columns: u32, line: &str, folder: &Path) -> Option<String> {
    let tried = Run::new("script")
        .args(["-q", "-e", "-c"])
        .arg(format!("stty cols {columns} rows 50; {line}"))
        .arg("/dev/null")
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("SHELL", "/bin/sh")
        .env("TERM", "xterm")
        .env("HOME", "/nonexistent")
        .env("T", env!("CARGO_BIN_EXE_trayscan"))
        .current_dir(folder)
        .try_raw();
    let Ok(output) = tried else {
        eprintln!("skipped: this machine has no `script`");
        return None;
    };
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{shown}");
    Some(shown.replace("\r\n", "\n"))
}

#[test]
fn a_table_fits_the_terminal_and_lists_hidden_columns() {
    let folder = TempDir::new().unwrap();
    let mut columns_before = 0;
    for width in [40, 80, 120, 200, 400] {
        let line = "NO_COLOR=1 $T export --sandbox 2>told";
        let Some(table) = on_terminal(width, line, folder.path()) else {
            return;
        };
        let lines: Vec<&str> = table.lines().collect();
        assert_eq!(lines.len(), 252, "header, rule, batches");
        for line in &lines {
            assert!(line.width() <= width as usize, "{width}: {line:?}");
            assert!(!line.contains(|c: char| c.is_control()), "{line:?}");
        }
        let columns = lines[1].split_whitespace().count();
        assert!(columns > columns_before, "{width}: more room, more columns");
        columns_before = columns;
        let stderr = std::fs::read_to_string(folder.path().join("told")).unwrap();
        let hidden = format!("note: {} more columns do not fit", 18 - columns);
        assert_eq!(stderr.contains(&hidden), columns < 18, "{stderr}");
        if width == 80 {
            // What a grower looks at first: date, crop, both rates, and warnings.
            for label in ["created", "crop", "germ. %", "usable %", "warn"] {
                assert!(lines[0].contains(label), "{label} in {}", lines[0]);
            }
            assert!(!lines[0].contains("report"), "{}", lines[0]);
        }
        if width == 120 {
            assert!(lines[0].contains("name"), "{}", lines[0]);
        }
    }
    assert_eq!(columns_before, 18);
}

#[test]
fn requested_fields_are_shown_at_any_width() {
    let folder = TempDir::new().unwrap();
    let line = "$T export --sandbox --color never --fields batch_id,analysis_link,comment 2>told";
    let Some(table) = on_terminal(80, line, folder.path()) else {
        return;
    };
    let header: Vec<&str> = table.lines().next().unwrap().split_whitespace().collect();
    assert_eq!(header, ["id", "report", "comment"]);
}

#[test]
fn colour_is_used_on_a_terminal_and_not_in_a_file() {
    let folder = TempDir::new().unwrap();
    let Some(table) = on_terminal(80, "$T export --sandbox", folder.path()) else {
        return;
    };
    assert!(table.contains("\u{1b}[1m"), "the header is bold");
    for line in [
        "NO_COLOR=1 $T export --sandbox 2>told",
        "$T export --sandbox -f table -o a.txt 2>told",
    ] {
        let table = on_terminal(80, line, folder.path()).unwrap();
        assert!(!table.contains('\u{1b}'), "{table:?}");
    }
    let file = std::fs::read_to_string(folder.path().join("a.txt")).unwrap();
    assert!(!file.contains('\u{1b}'));
    let rule = file.lines().nth(1).unwrap();
    assert_eq!(
        rule.split_whitespace().count(),
        18,
        "a file has all columns"
    );
}

/// An export slow enough for the progress line to be drawn.
fn slow() -> (Server, String) {
    let server = Server::start(&["--page-size", "25", "--fault", "latency:60ms"]);
    let access = format!(
        "--base-url http://{} --client-id {} --client-secret {}",
        server.address, server.client_id, server.client_secret
    );
    (server, access)
}

/// Words that only the progress line contains.
const PROGRESS: &str = " pages, ";

#[test]
fn progress_is_drawn_on_a_terminal_and_cleared_at_the_end() {
    let (_server, access) = slow();
    let folder = TempDir::new().unwrap();
    let line = format!("$T export {access} -o a.csv");
    let Some(shown) = on_terminal(80, &line, folder.path()) else {
        return;
    };
    assert!(shown.contains(PROGRESS), "{shown:?}");
    let last = shown.trim_end().rsplit(['\n', '\r']).next().unwrap();
    assert!(last.contains("250 batches (") && !last.contains(PROGRESS));
    // After it, `^C` still fits on the line, which is then cleared as a whole.
    let drawn = shown
        .split("\u{1b}[2K")
        .filter(|line| line.contains(PROGRESS));
    for line in drawn {
        let width = line.trim_end_matches('\r').width();
        assert!((40..=78).contains(&width), "{width}: {line:?}");
    }
    for quiet in ["-q", "--progress never", "2>told"] {
        let shown = on_terminal(80, &format!("{line} {quiet}"), folder.path()).unwrap();
        assert!(!shown.contains(PROGRESS), "{quiet}: {shown:?}");
    }
    let stderr = std::fs::read_to_string(folder.path().join("told")).unwrap();
    assert!(
        !stderr.contains(PROGRESS) && !stderr.contains('\u{1b}'),
        "{stderr:?}"
    );
}

#[test]
fn progress_does_not_mix_with_data_on_the_same_terminal() {
    let (_server, access) = slow();
    let folder = TempDir::new().unwrap();
    let line = format!("$T export {access} -f ndjson");
    let Some(shown) = on_terminal(80, &line, folder.path()) else {
        return;
    };
    assert!(!shown.contains(PROGRESS), "{shown:?}");
    assert_eq!(shown.matches("\"batch_id\"").count(), 250);
}

#[test]
fn without_a_terminal_there_is_no_progress() {
    let (server, _) = slow();
    let ended = trayscan(&["export", "-f", "ndjson"])
        .env("HOME", "/nonexistent")
        .service(&server)
        .output()
        .expect(0);
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    assert!(!ended.stderr.contains(PROGRESS) && !ended.stderr.contains('\u{1b}'));
    assert_eq!(run(&["export", "--sandbox", "-q"]).stderr, "");
}

#[test]
fn requested_progress_is_printed_as_lines_without_a_terminal() {
    let server = Server::start(&["--page-size", "25", "--fault", "latency:150ms"]);
    let ended = crate::harness::export(&server, &["--progress", "always", "--parallel", "1"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let lines = ended
        .stderr
        .lines()
        .filter(|line| line.contains(" pages, "));
    assert!(lines.count() >= 2, "{ended:?}");
    let silent = crate::harness::export(&server, &["--progress", "never"]);
    assert!(!silent.stderr.contains(" pages, "), "{silent:?}");
}

/// Creates an archive in `folder` with terminal control sequences in a crop.
fn hostile(folder: &Path) {
    trayscan(&["sync", "a.db", "--sandbox", "-q"])
        .current_dir(folder)
        .output()
        .expect(0);
    let db = rusqlite::Connection::open(folder.join("a.db")).unwrap();
    let crop = "\"crop_type\":\"T\\u001b]0;x\\u0007\\r\u{202e}\u{9b}2J\u{7f}\"";
    let sql = "UPDATE batches SET received = replace(received, '\"crop_type\":\"Tomato\"', ?1)";
    assert_eq!(db.execute(sql, [crop]).unwrap(), 250);
}

/// The crop, unescaped.
const HOSTILE: &str = "T\u{1b}]0;x\u{7}\r\u{202e}\u{9b}2J\u{7f}";

fn assert_harmless(shown: &str) {
    let harmful = |letter: char| letter.is_control() && letter != '\n' && letter != '\t';
    // The colours are our own.
    let shown = [0, 1, 32, 34, 35]
        .iter()
        .fold(shown.to_owned(), |shown, color| {
            shown.replace(&format!("\u{1b}[{color}m"), "")
        });
    assert!(!shown.contains(harmful), "{shown:?}");
    assert!(!shown.contains('\u{202e}'), "{shown:?}");
}

#[test]
fn no_format_passes_control_sequences_to_the_terminal() {
    let folder = TempDir::new().unwrap();
    hostile(folder.path());
    let text = "T\\u{1b}]0;x\\u{7}\\u{d}\\u{202e}\\u{9b}2J\\u{7f}";
    for (line, crop) in [
        ("export --archive a.db -f csv", text),
        ("export --archive a.db -f csv --excel", text),
        ("export --archive a.db -f tsv", text),
        ("export --archive a.db -f csv -o /dev/tty", text),
        ("export --archive a.db -f json", ""),
        ("export --archive a.db -f ndjson", ""),
        ("export --archive a.db -f singer", ""),
        ("summary --archive a.db -f csv", text),
        ("summary --archive a.db -f json", ""),
    ] {
        let line = format!("$T {line} 2>told");
        let Some(shown) = on_terminal(80, &line, folder.path()) else {
            return;
        };
        // The line ends for Excel are allowed.
        assert_harmless(&shown.replace("\r\n", "\n"));
        if crop.is_empty() {
            assert!(shown.contains("\\u202e\\u009b2J\\u007f"), "{line}: {shown}");
        } else {
            assert!(shown.contains(crop), "{line}: {shown}");
        }
        if line.contains("ndjson") {
            let crops = shown.lines().map(|line| {
                let batch: serde_json::Value = serde_json::from_str(line).unwrap();
                batch["crop_type"].as_str().unwrap().to_owned()
            });
            assert!(
                crops.into_iter().any(|crop| crop == HOSTILE),
                "the same text"
            );
        }
    }
    // Pipes get the exact bytes.
    for format in ["csv", "ndjson"] {
        let line = format!("$T export --archive a.db -f {format} 2>told | cat > out");
        on_terminal(80, &line, folder.path());
        let exact = std::fs::read_to_string(folder.path().join("out")).unwrap();
        let crop = if format == "csv" {
            HOSTILE
        } else {
            "\u{202e}\u{9b}2J\u{7f}"
        };
        assert!(exact.contains(crop), "{format}");
    }
}

#[test]
fn a_report_shows_control_characters_as_escapes() {
    let folder = TempDir::new().unwrap();
    hostile(folder.path());
    trayscan(&["report", "--archive", "a.db", "-q", "-o", "a.html"])
        .args([
            "--title",
            "Week\u{1b}[2J\u{202e}",
            "--where",
            "crop_type!=x\u{7}",
        ])
        .current_dir(folder.path())
        .output()
        .expect(0);
    let page = std::fs::read_to_string(folder.path().join("a.html")).unwrap();
    assert_harmless(&page);
    for shown in [
        "<h1>Week\\u{1b}[2J\\u{202e}</h1>",
        "crop_type!=x\\u{7}",
        "T\\u{1b}]0;x\\u{7}",
    ] {
        assert!(page.contains(shown), "{shown}");
    }
}
