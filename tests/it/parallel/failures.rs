//! Failures, signals and closed pipes.

use std::fs;
use std::io::{BufRead as _, Read as _};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::dates::{DAY, DatedService, every};
use super::lines;
use crate::export::{texts, with};
use crate::fake::{Answer, FakeService, token};
use crate::files::{self, OLD, SLOW, names};
use crate::harness::{LIMIT, Running, SOON, Server, export};

/// An existing output file in a temporary folder.
struct OldFile {
    folder: TempDir,
    path: std::path::PathBuf,
}

impl OldFile {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("a.csv");
        fs::write(&path, OLD).unwrap();
        Self { folder, path }
    }

    fn assert_untouched(&self) {
        assert!(fs::read(&self.path).unwrap() == OLD);
        assert_eq!(names(self.folder.path()), ["a.csv"]);
    }
}

#[test]
fn an_invalid_batch_in_one_window_ends_with_code_7_and_keeps_the_old_file() {
    for flawed in [0, 9, 10, 150, 299] {
        let service = DatedService {
            flawed: Some(flawed),
            ..DatedService::new(every(DAY, "2024-01-01T08:30:00Z", 300))
        }
        .serve();
        let old = OldFile::new();
        let flags = ["-o", old.path.to_str().unwrap(), "--parallel", "8"];
        let ended = export(&service, &flags).expect(7);
        assert!(ended.stderr.contains("number_of_images"), "{ended:?}");
        old.assert_untouched();
    }
}

#[test]
fn a_refused_window_ends_with_its_code_and_keeps_the_old_file() {
    for (status, code) in [(409, 6), (403, 4), (500, 5)] {
        let dated = DatedService::new(every(DAY, "2024-01-01T08:30:00Z", 300));
        let texts: Vec<String> = (0..300).map(|number| dated.text(number)).collect();
        let service = FakeService::start(move |asked| {
            let start = asked.query("start_date").unwrap_or_default();
            match asked.path() {
                "/v2/auth" => token(),
                _ if start.as_str() > "2024-06" => Answer::error(status, "not this one"),
                _ => Answer::ok(dated.page(&texts, asked)),
            }
        });
        let old = OldFile::new();
        let flags = ["-o", old.path.to_str().unwrap(), "--parallel", "8"];
        let ended = export(&service, &flags).expect(code);
        assert!(ended.stderr.contains("not this one"), "{ended:?}");
        // The dates are not those of the user.
        let hint = "trayscan asked for a part of the range";
        assert_eq!(ended.stderr.contains(hint), status == 409, "{ended:?}");
        old.assert_untouched();
    }
}

/// Starts an export to the old file with 8 workers, and waits for its third page.
fn start_with_8_workers(server: &Server, old: &OldFile) -> Running {
    files::export_to(server, &old.path, &["--parallel", "8"]).start_until_third_page()
}

#[test]
fn a_signal_stops_all_workers_and_keeps_the_old_file() {
    let server = Server::start(&SLOW);
    for (signal, code) in [("TERM", 143), ("INT", 130)] {
        let old = OldFile::new();
        let running = start_with_8_workers(&server, &old);
        running.signal(signal);
        running.ends_soon_with(code);
        old.assert_untouched();
    }
}

#[test]
fn a_killed_service_stops_all_workers_and_keeps_the_old_file() {
    let server = Server::start(&SLOW);
    let old = OldFile::new();
    let running = start_with_8_workers(&server, &old);
    server.signal("KILL");
    let stderr = running.ends_soon_with(5);
    assert!(stderr.contains("is unchanged"), "{stderr}");
    old.assert_untouched();
}

/// Starts an NDJSON export to a pipe.
fn piped(server: &Server, args: &[&str]) -> Running {
    files::export(server, &[&["-f", "ndjson", "-q"], args].concat()).start()
}

#[test]
fn a_closed_pipe_stops_all_workers_silently() {
    let server = Server::start(&SLOW);
    for workers in ["2", "16"] {
        let mut child = piped(&server, &["--parallel", workers]);
        let mut line = String::new();
        child.stdout.take().unwrap().read_line(&mut line).unwrap();
        assert!(line.ends_with("}\n"), "{line:?}");
        let left = Instant::now();
        let ended = child.output();
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(141), ""));
        assert!(left.elapsed() < SOON, "{:?}", left.elapsed());
    }
}

/// Returns the peak memory of a process, in megabytes.
#[cfg(target_os = "linux")]
fn peak_memory(child: &Running) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", child.pid())).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().unwrap() / 1024)
}

/// Waits until the memory of the process stops growing.
#[cfg(target_os = "linux")]
fn settle(child: &Running) {
    let started = Instant::now();
    let (mut most, mut since) = (0, Instant::now());
    while since.elapsed() < Duration::from_millis(400) && started.elapsed() < LIMIT {
        let now = peak_memory(child).unwrap();
        if now > most {
            (most, since) = (now, Instant::now());
        }
        thread::sleep(Duration::from_millis(20));
    }
}

mod thorough {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    #[ignore = "slow"]
    fn a_slow_reader_needs_bounded_memory_and_gets_everything() {
        let server = with(&["--batches", "30000", "--page-size", "1000"], &[]);
        let mut child = piped(&server, &["--parallel", "8"]);
        let mut reader = child.stdout.take().unwrap();
        let mut text = String::new();
        reader.read_line(&mut text).unwrap();
        settle(&child);
        let mut most = peak_memory(&child).unwrap();
        for _ in 1..30_000 {
            let read = reader.read_line(&mut text).unwrap();
            assert_ne!(read, 0, "ended too early");
        }
        // The process may have exited already.
        most = most.max(peak_memory(&child).unwrap_or_default());
        assert_eq!(reader.read_to_string(&mut text).unwrap(), 0);
        let ended = child.output();
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""));
        assert!(most < 150, "{most} MB with 8 workers");
        assert!(text == lines(&texts(&server, "")));
    }
}
