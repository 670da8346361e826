//! System calls that fail for lack of resources: the program exits with a message and never hangs.

use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::files::names;
use crate::harness::{Output, Run, SOON};
use crate::kills::strace_kills;

/// Runs the program under strace with `flags` that make calls fail. Returns `None` if strace is unavailable.
fn run_with_failing_calls(folder: &TempDir, flags: &[&str], args: &[&str]) -> Option<Output> {
    if !strace_kills() {
        eprintln!("skipped: making calls fail needs strace");
        return None;
    }
    let mut command = Run::new("strace");
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
        .current_dir(folder);
    let mut child = command.start();
    let started = Instant::now();
    while !child.has_ended() {
        if started.elapsed() > SOON {
            // Killing only strace would leave the program running.
            let children = format!("/proc/{0}/task/{0}/children", child.pid());
            let children = std::fs::read_to_string(children).unwrap();
            Run::new("kill")
                .arg("-KILL")
                .args(children.split(' '))
                .succeeds();
            child.kill();
            panic!("it hangs: {flags:?} {args:?}");
        }
        thread::sleep(Duration::from_millis(5));
    }
    Some(child.output())
}

const COMMANDS: [&[&str]; 5] = [
    &["export", "--sandbox", "-q", "-o", "a.csv"],
    &["sync", "a.db", "--sandbox", "-q"],
    &["check", "--sandbox"],
    &["summary", "--sandbox", "-q"],
    &["serve", "--listen", "127.0.0.1:0"],
];

#[test]
fn a_runtime_that_cannot_start_ends_with_code_1() {
    for inject in [
        // The first eventfd of the main thread is optional and the second is required, so all fail.
        "inject=eventfd2:error=EMFILE:when=1+",
        "inject=epoll_create1:error=EMFILE:when=1+",
        "inject=socketpair:error=EMFILE:when=1+",
        "inject=clone3:error=EAGAIN:when=2",
        "inject=clone3:error=EAGAIN:when=1+",
    ] {
        for args in COMMANDS {
            // `check` catches no signals.
            if inject.contains("socketpair") && args[0] == "check" {
                continue;
            }
            let folder = TempDir::new().unwrap();
            let Some(ended) = run_with_failing_calls(&folder, &["-e", inject], args) else {
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
fn a_failed_eventfd_write_ends_with_code_1() {
    for when in ["1", "2", "1+"] {
        let inject = format!("inject=write:error=EIO:when={when}");
        let flags = ["-P", "anon_inode:[eventfd]", "-e", &*inject];
        for args in &COMMANDS[..4] {
            let folder = TempDir::new().unwrap();
            let Some(ended) = run_with_failing_calls(&folder, &flags, args) else {
                return;
            };
            // A run may finish before it has to wake another thread.
            if ended.code != Some(0) {
                assert_eq!(ended.code, Some(1), "{args:?}: {ended:?}");
                assert!(ended.stderr.contains("error: "), "{args:?}: {ended:?}");
                // The archive may have a journal, as after a kill; SQLite rolls it back.
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
        let Some(ended) = run_with_failing_calls(&folder, &["-e", inject], args) else {
            return;
        };
        assert_eq!(ended.code, Some(1), "{args:?}: {ended:?}");
        let message = "cannot start the runtime";
        assert!(ended.stderr.contains(message), "{args:?}: {ended:?}");
    }
}
