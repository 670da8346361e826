//! Where the secret comes from.

use std::fs;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use super::{Home, SECRET, access, fetch, fetched, profile, refused};
use crate::harness::{LIMIT, Server};

#[test]
fn an_empty_secret_in_the_file_counts_as_missing() {
    let server = Server::start(&[]);
    let home = Home::with(&profile(&server, "client_secret = \"\""));
    let ended = fetch(&home).output();
    refused(&ended, &["the client secret is missing"]);
    let log = server.stop().stderr;
    assert!(log.contains("stopped after 0 requests"), "{log}");
}

#[test]
fn a_secret_file_contains_the_secret_and_at_most_one_newline() {
    let server = Server::start(&["--client-secret", SECRET]);
    let home = Home::with(&profile(&server, "client_secret_file = \"~/secret\""));
    let path = home.path().join("secret");
    for end in ["", "\n", "\r\n"] {
        fs::write(&path, format!("{SECRET}{end}")).unwrap();
        fetched(&fetch(&home).output());
    }
    // By flag and by variable: in the home directory, relative, and absolute.
    let bare = Home::empty();
    fs::write(bare.path().join("secret"), SECRET).unwrap();
    let absolute = bare.path().join("secret");
    for file in ["~/secret", "secret", absolute.to_str().unwrap()] {
        let flag = ["--client-secret-file", file];
        fetched(&fetch(&bare).args(access(&server)).args(flag).output());
        let mut command = fetch(&bare);
        command.env("TRAYSCAN_CLIENT_SECRET_FILE", file);
        fetched(&command.args(access(&server)).output());
    }
}

#[test]
fn a_secret_can_be_read_from_standard_input() {
    let server = Server::start(&["--client-secret", SECRET]);
    let home = Home::empty();
    for text in [SECRET.to_owned(), format!("{SECRET}\n"), String::new()] {
        let ended = fetch(&home)
            .args(access(&server))
            .args(["--client-secret-file", "-"])
            .output_for(&text);
        if text.is_empty() {
            refused(&ended, &["no client secret in standard input"]);
        } else {
            fetched(&ended);
        }
    }
}

#[test]
fn ctrl_c_interrupts_reading_a_secret_from_standard_input() {
    let server = Server::start(&[]);
    let mut child = fetch(&Home::empty())
        .args(access(&server))
        .args(["--client-secret-file", "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::null())
        .start();
    thread::sleep(Duration::from_millis(500));
    child.signal("INT");
    assert!(
        child.ends_within(LIMIT).is_some(),
        "still waiting after Ctrl-C"
    );
}

#[test]
fn an_unusable_secret_file_is_named() {
    let server = Server::start(&[]);
    let home = Home::empty();
    fs::write(home.path().join("empty"), "").unwrap();
    fs::write(home.path().join("blank"), "\r\n").unwrap();
    fs::write(home.path().join("binary"), b"hunter2\xff").unwrap();
    for (file, says) in [
        ("missing", "No such file"),
        ("~/missing", "No such file"),
        ("empty", "no client secret in `empty`"),
        ("blank", "no client secret in `blank`"),
        (".", "cannot read the client secret from `.`"),
        ("binary", "cannot read the client secret from `binary`"),
    ] {
        let mut command = fetch(&home);
        command.args(access(&server));
        refused(
            &command.args(["--client-secret-file", file]).output(),
            &[says, &format!("`{file}`")],
        );
    }
    let log = server.stop().stderr;
    assert!(log.contains("stopped after 0 requests"), "{log}");
}

#[test]
fn a_command_can_print_the_secret() {
    let server = Server::start(&["--client-secret", SECRET]);
    for line in [
        format!("\"printf '%s' '{SECRET}' | cat\""),
        format!("\"echo '{SECRET}'\""),
        format!("[\"printf\", \"%s\\\\r\\\\n\", \"{SECRET}\"]"),
    ] {
        let line = format!("client_secret_command = {line}");
        fetched(&fetch(&Home::with(&profile(&server, &line))).output());
    }
}

#[test]
fn a_failed_secret_command_is_reported_without_its_output() {
    let server = Server::start(&[]);
    for (line, says) in [
        ("\"echo hunter2; exit 3\"", "exit status: 3"),
        ("\"true\"", "no client secret in the output of"),
        ("\"echo\"", "no client secret in the output of"),
        ("[\"/nonexistent/tool\", \"hunter2\"]", "No such file"),
        ("\"printf 'hunter2\\\\377'\"", "not text"),
        ("\"echo hunter2; kill -9 $$\"", "signal: 9"),
    ] {
        let line = format!("client_secret_command = {line}");
        let home = Home::with(&profile(&server, &line));
        refused(&fetch(&home).output(), &["client_secret_command", says]);
    }
    let log = server.stop().stderr;
    assert!(log.contains("stopped after 0 requests"), "{log}");
}

#[test]
fn two_secrets_in_the_same_layer_are_refused() {
    let secret = "client_secret = \"hunter2\"";
    let file = "client_secret_file = \"a\"";
    let command = "client_secret_command = \"a\"";
    for (one, two) in [(secret, file), (secret, command), (file, command)] {
        let home = Home::with(&format!("[profiles.default]\n{one}\n{two}\n"));
        for what in [&["config", "show"][..], &["check"]] {
            let flags = ["--base-url", "http://127.0.0.1:1", "--client-id", "a"];
            let ended = home.run(&[what, &flags].concat());
            assert_eq!(ended.code, Some(2), "{ended:?}");
            let all = format!("{}{}", ended.stdout, ended.stderr);
            assert!(all.contains("set twice in the same place (config file, profile default)"));
            assert!(!all.contains("hunter2"), "{ended:?}");
        }
    }
    let home = Home::empty();
    let flags = ["--client-secret=hunter2", "--client-secret-file=a"];
    let twice = home.run(&[&["config", "show"][..], &flags].concat());
    refused(&twice, &["--client-secret"]);
    let mut command = home.command(&["config", "show"]);
    command.env("TRAYSCAN_CLIENT_SECRET", "hunter2");
    command.env("TRAYSCAN_CLIENT_SECRET_FILE", "a");
    refused(&command.output(), &["TRAYSCAN_CLIENT_SECRET"]);
}
