//! Secrets, config files and certificates from sources that are endless or too large.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use crate::harness::{Output, Run, Running, Server};
use crate::settings::{Home, access, fetch, fetched, profile, refused, set_mode};

/// Creates a sparse file of 64 MiB.
fn make_large(home: &Home, name: &str) -> String {
    let path = home.path().join(name);
    File::create(&path).unwrap().set_len(64 << 20).unwrap();
    set_mode(&path, 0o600);
    path.to_str().unwrap().to_owned()
}

fn assert_no_requests(server: Server) {
    let log = server.stop().stderr;
    assert!(log.contains("stopped after 0 requests"), "{log}");
}

#[test]
fn a_secret_is_at_most_64_kib() {
    let server = Server::start(&[]);
    let home = Home::empty();
    let large = make_large(&home, "large");
    for file in ["/dev/zero", &large] {
        let mut command = fetch(&home);
        command
            .args(access(&server))
            .args(["--client-secret-file", file]);
        let says = format!("cannot read the client secret from `{file}`");
        refused(&command.output(), &[&says, "larger than 64 KiB"]);
    }
    let mut command = fetch(&home);
    command
        .args(access(&server))
        .args(["--client-secret-file", "-"])
        .stdin(File::open("/dev/zero").unwrap());
    refused(&command.output(), &["larger than 64 KiB"]);
    for line in [
        "cat /dev/zero",
        "yes hunter2",
        "cat /dev/zero; echo hunter2",
    ] {
        let line = format!("client_secret_command = \"{line}\"");
        let home = Home::with(&profile(&server, &line));
        let words = ["client_secret_command`", "it printed more than 64 KiB"];
        refused(&fetch(&home).output(), &words);
    }
    assert_no_requests(server);
}

#[test]
fn a_config_file_is_at_most_1_mib() {
    let home = Home::empty();
    let large = make_large(&home, "large.toml");
    for file in ["/dev/zero", &large] {
        for command in ["show", "path"] {
            let ended = home.run(&["config", command, "--config", file]);
            if command == "path" {
                assert_eq!(ended.code, Some(0), "the file is not read: {ended:?}");
            } else {
                let says = format!("cannot read the config file `{file}`");
                refused(&ended, &[&says, "larger than 1 MiB"]);
            }
        }
    }
    let just_right = home.path().join("right.toml");
    fs::write(&just_right, "#".repeat(1 << 20)).unwrap();
    let ended = home.run(&["config", "show", "--config", just_right.to_str().unwrap()]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn certificates_are_bounded_too() {
    let server = Server::start(&[]);
    let home = Home::empty();
    let mut command = fetch(&home);
    command
        .args(access(&server))
        .args(["--client-secret", "hunter2", "--ca-cert", "/dev/zero"]);
    refused(&command.output(), &["`/dev/zero`", "larger than 16 MiB"]);
    assert_no_requests(server);
}

#[test]
fn stderr_of_a_secret_command_is_shown_only_if_verbose_and_successful() {
    let server = Server::start(&[]);
    let secret = &server.client_secret;
    let line = format!("echo unlocking >&2; echo 'it is {secret}.' >&2; echo '{secret}'");
    let home = Home::with(&profile(
        &server,
        &format!("client_secret_command = \"{line}\""),
    ));
    let quiet = fetch(&home).output();
    fetched(&quiet);
    assert!(!quiet.stderr.contains("unlocking"), "{quiet:?}");
    let verbose = fetch(&home).arg("-v").output();
    fetched(&verbose);
    for line in [
        "client_secret_command: unlocking\n",
        "client_secret_command: it is ….\n",
    ] {
        assert!(verbose.stderr.contains(line), "{verbose:?}");
    }
    assert!(!verbose.stderr.contains(secret.as_str()), "{verbose:?}");

    let line = "client_secret_command = \"echo hunter2 unlocking >&2; echo hunter2; exit 7\"";
    let home = Home::with(&profile(&server, line));
    for args in [&[][..], &["-v"], &["-vv"]] {
        let failed = fetch(&home).args(args).output();
        refused(&failed, &["exit status: 7"]);
        assert!(!failed.stderr.contains("unlocking"), "{failed:?}");
    }
}

#[test]
fn a_secret_file_that_others_can_read_gives_a_warning() {
    let server = Server::start(&[]);
    let home = Home::with(&profile(&server, "client_secret_file = \"~/secret\""));
    let path = home.path().join("secret");
    fs::write(&path, &server.client_secret).unwrap();
    for (mode, warns) in [
        (0o644, true),
        (0o640, true),
        (0o604, true),
        (0o600, false),
        (0o400, false),
    ] {
        set_mode(&path, mode);
        let run = fetch(&home).output();
        fetched(&run);
        let shown = home.run(&["config", "show"]);
        let flag = path.to_str().unwrap();
        let given = home.run(&["config", "show", "--client-secret-file", flag]);
        let warning = format!("warning: other users can read `{flag}`, which contains a secret");
        for ended in [run, shown, given] {
            let count = ended.stderr.matches(&warning).count();
            assert_eq!(count, usize::from(warns), "{mode:o}: {ended:?}");
        }
    }
}

/// Waits for the child and returns its output.
fn end(mut child: Running) -> Output {
    let mut stderr = String::new();
    let mut pipe = child.stderr.take().unwrap();
    pipe.read_to_string(&mut stderr).unwrap();
    Output {
        code: child.wait().code(),
        stdout: String::new(),
        stderr,
    }
}

#[test]
#[ignore = "slow: waits for ten seconds"]
fn waiting_for_a_secret_times_out_after_ten_seconds() {
    let server = Server::start(&[]);
    let home = Home::with(&profile(&server, "client_secret_command = \"sleep 300\""));
    let pipe = home.path().join("pipe");
    assert!(Run::new("mkfifo").arg(&pipe).succeeds());
    let pipe = pipe.to_str().unwrap();
    let started = Instant::now();
    let spawn = |command: &mut Run| {
        let command = command.stdout(Stdio::null());
        command.start()
    };
    let mut waiting = Vec::new();
    // The command of the profile, pipes without a writer, and a standard input that is never closed.
    waiting.push(spawn(&mut fetch(&home)));
    waiting.push(spawn(fetch(&home).args(["--client-secret-file", pipe])));
    waiting.push(spawn(fetch(&home).args(["--config", pipe])));
    let mut child = spawn(
        fetch(&home)
            .args(["--client-secret-file", "-"])
            .stdin(Stdio::piped()),
    );
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"hunter2").unwrap();
    waiting.push(child);
    let ends: Vec<_> = waiting
        .into_iter()
        .map(|child| thread::spawn(move || end(child)))
        .collect();
    for end in ends {
        refused(&end.join().unwrap(), &["it took longer than 10s"]);
    }
    let took = started.elapsed();
    assert!(took >= Duration::from_secs(10), "{took:?}");
    drop(stdin);
    assert_no_requests(server);
}
