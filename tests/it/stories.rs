//! The first steps in the README, run as they stand there: the sandbox, a login, and a cron job with an alarm.

use std::net::TcpListener;
use std::path::Path;

use crate::harness::{Folder, Output, Run, Server, Service as _};

/// Returns the block of the README that contains `words`.
fn block(words: &str) -> String {
    let readme = include_str!("../../README.md");
    let mut blocks = readme.split("```").skip(1).step_by(2);
    let block = blocks.find(|block| block.contains(words)).unwrap();
    let (_, lines) = block.split_once('\n').unwrap();
    lines.to_owned()
}

/// Runs a script in `folder`, which is also the home, with the program on the path and no settings.
fn shell(script: &str, folder: &Folder) -> Output {
    let program = Path::new(env!("CARGO_BIN_EXE_trayscan"));
    let path = std::env::var("PATH").unwrap();
    let path = format!("{}:{path}", program.parent().unwrap().display());
    Run::new("sh")
        .args(["-c", script])
        .env_clear()
        .env("PATH", path)
        .env("HOME", folder.at(""))
        .current_dir(folder.at(""))
        .output()
}

/// Returns a port that is free now.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

#[test]
fn the_sandbox_needs_no_settings() {
    let folder = Folder::new();
    let first = block("cargo run -- export --sandbox");
    let exported = shell(&first.replace("cargo run --", "trayscan"), &folder).expect(0);
    assert_eq!(exported.stdout.lines().count(), 250);
    assert_eq!(folder.names(), [""; 0], "nothing is written");
}

#[test]
fn a_login_to_a_server_on_this_machine_leads_to_a_workbook() {
    let folder = Folder::new();
    let port = free_port();
    let script = block("trayscan login --profile demo");
    let script = script.replace(
        "trayscan serve ",
        &format!("trayscan serve --listen 127.0.0.1:{port} "),
    );
    let script = script.replace("127.0.0.1:8080", &format!("127.0.0.1:{port}"));
    // On a slow machine, the server needs longer than the README waits.
    let wait = format!(
        "for i in $(seq 100); do trayscan export -qq --base-url http://127.0.0.1:{port} --client-id me --client-secret demo-secret > /dev/null && break; sleep 0.1; done"
    );
    let (serve, rest) = script.split_once('\n').unwrap();
    let script = format!("{serve}\npid=$!\ntrap 'kill $pid' EXIT\n{wait}\nset -e\n{rest}");
    let ended = shell(&script, &folder).expect(0);
    assert!(
        !ended.stderr.contains("demo-secret") && !ended.stdout.contains("demo-secret"),
        "{ended:?}"
    );
    let workbook = std::fs::read(folder.at("october.xlsx")).unwrap();
    assert!(workbook.starts_with(b"PK"));
    let last = ended
        .stderr
        .lines()
        .rev()
        .find(|line| line.contains("october.xlsx"));
    assert!(
        last.is_some_and(|line| line.contains(" batches (2026-10-01 through 2026-10-31, v2, ")),
        "{ended:?}"
    );
    // The profile was saved: it is enough from now on.
    let shown = shell("trayscan config show", &folder).expect(0);
    assert!(
        shown.stdout.contains(&format!("http://127.0.0.1:{port}")),
        "{shown:?}"
    );
    assert!(!shown.stdout.contains("demo-secret"), "{shown:?}");
}

#[test]
fn cron_mails_only_if_something_is_wrong() {
    let folder = Folder::new();
    let server = Server::start(&["--fault", "503:0.2", "--seed", "3"]);
    let [address, id, secret] = server.access();
    let crontab = block("trayscan sync -q --wait 10m").replace("/data/", "");
    let commands: Vec<&str> = crontab
        .lines()
        .map(|line| line.splitn(6, char::is_whitespace).last().unwrap().trim())
        .collect();
    let [sync, status] = commands[..] else {
        panic!("{crontab}")
    };
    let settings = format!(
        "export TRAYSCAN_BASE_URL={address} TRAYSCAN_CLIENT_ID={id} TRAYSCAN_CLIENT_SECRET={secret};"
    );
    // What cron does: it mails what a command prints.
    let mail = |command: &str| {
        let ended = shell(&format!("{settings} {command}"), &folder);
        (ended.code.unwrap(), ended.stdout + &ended.stderr)
    };
    // Before the first run, the archive is missing.
    let (code, text) = mail(status);
    assert!(
        code == 10 && text.starts_with("error: there is no archive"),
        "{text}"
    );
    let patient = sync.replace("-q", "-q --retries 50 --retry-wait 1ms");
    assert_eq!(mail(&patient), (0, String::new()));
    assert_eq!(mail(status), (0, String::new()));
    server.stop();
    // The service is down: a mail, but the archive is not too old yet.
    let (code, text) = mail(&sync.replace("-q", "-q --retries 0"));
    assert!(code == 5 && text.contains("error: "), "{text}");
    assert!(!text.contains(&secret), "{text}");
    assert_eq!(mail(status), (0, String::new()));
    // Two days later.
    let archive = rusqlite::Connection::open(folder.at("batches.db")).unwrap();
    let sql =
        "UPDATE coverage SET covered_through = strftime('%Y-%m-%dT%H:%M:%SZ', 'now', '-2 days')";
    archive.execute(sql, []).unwrap();
    drop(archive);
    let (code, text) = mail(status);
    assert!(
        code == 10 && text.starts_with("error: the archive `batches.db`: it is complete through "),
        "{text}"
    );
}
