//! Machines that have run out of something: the program ends with a message, and never hangs.

use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::files::names;
use crate::harness::{Ended, SOON};
use crate::kills::strace_kills;

/// Runs the program with `flags` of strace, which make calls fail; nothing if it cannot.
fn fails(folder: &TempDir, flags: &[&str], args: &[&str]) -> Option<Ended> {
    if !strace_kills() {
        eprintln!("skipped: calls that fail need strace");
        return None;
    }
    let mut command = Command::new("strace");
    command
        .args(["-f", "-o", "/dev/null"])
        .args(flags)
        .arg(env!("CARGO_BIN_EXE_trayscan"))
        .args(args)
        .env_clear()
        .env("HOME", "/nonexistent")
        .env("AWS_ACCESS_KEY_ID", "key")
        .env("AWS_SECRET_ACCESS_KEY", "secret")
        .env("AWS_REGION", "eu-west-1")
        .env("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
        .current_dir(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let started = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if started.elapsed() > SOON {
            // The program would outlive strace.
            let children = format!("/proc/{0}/task/{0}/children", child.id());
            let children = std::fs::read_to_string(children).unwrap();
            let _ = Command::new("kill")
                .arg("-KILL")
                .args(children.split(' '))
                .status();
            child.kill().unwrap();
            panic!("it hangs: {flags:?} {args:?}");
        }
        thread::sleep(Duration::from_millis(5));
    }
    Some(Ended::of(child.wait_with_output().unwrap()))
}

const COMMANDS: [&[&str]; 5] = [
    &["export", "--sandbox", "-q", "-o", "a.csv"],
    &["sync", "a.db", "--sandbox", "-q"],
    &["check", "--sandbox"],
    &["summary", "--sandbox", "-q"],
    &["serve", "--listen", "127.0.0.1:0"],
];

#[test]
fn what_a_runtime_needs_and_cannot_have_ends_with_code_1() {
    for inject in [
        // The second of the main thread; the first one is for something that can be done without.
        "inject=eventfd2:error=EMFILE:when=1+",
        "inject=epoll_create1:error=EMFILE:when=1+",
        "inject=socketpair:error=EMFILE:when=1+",
        "inject=clone3:error=EAGAIN:when=2",
        "inject=clone3:error=EAGAIN:when=1+",
    ] {
        for args in COMMANDS {
            // It catches no signals.
            if inject.contains("socketpair") && args[0] == "check" {
                continue;
            }
            let folder = TempDir::new().unwrap();
            let Some(ended) = fails(&folder, &["-e", inject], args) else {
                return;
            };
            assert_eq!(ended.code, Some(1), "{inject} {args:?}: {ended:?}");
            assert!(
                ended.stderr.starts_with("error: "),
                "{inject} {args:?}: {ended:?}"
            );
            assert_eq!(names(folder.path()), [""; 0], "{inject} {args:?}");
        }
    }
}

#[test]
fn an_eventfd_that_cannot_be_written_ends_with_code_1() {
    for when in ["1", "2", "1+"] {
        let inject = format!("inject=write:error=EIO:when={when}");
        let flags = ["-P", "anon_inode:[eventfd]", "-e", &*inject];
        for args in &COMMANDS[..4] {
            let folder = TempDir::new().unwrap();
            let Some(ended) = fails(&folder, &flags, args) else {
                return;
            };
            // A run may be over before it has to wake anybody.
            if ended.code != Some(0) {
                assert_eq!(ended.code, Some(1), "{args:?}: {ended:?}");
                assert!(ended.stderr.contains("error: "), "{args:?}: {ended:?}");
                // An archive is as a kill would leave it: SQLite undoes what its journal holds.
                let left = names(folder.path());
                let mut left_over = left.iter();
                assert!(
                    left_over.all(|name| name == "a.db" || name == "a.db-journal"),
                    "{left:?}"
                );
            }
        }
    }
}

#[cfg(feature = "cloud")]
#[test]
fn object_storage_without_a_runtime_ends_with_code_1() {
    for args in [
        &["export", "--sandbox", "-q", "-o", "s3://bucket/a.csv"][..],
        &["verify", "s3://bucket/a.csv", "--against", "b.csv"],
    ] {
        let folder = TempDir::new().unwrap();
        let inject = "inject=eventfd2:error=EMFILE:when=1";
        let Some(ended) = fails(&folder, &["-e", inject], args) else {
            return;
        };
        assert_eq!(ended.code, Some(1), "{args:?}: {ended:?}");
        let told = "cannot start the runtime for object storage";
        assert!(ended.stderr.contains(told), "{args:?}: {ended:?}");
    }
}
