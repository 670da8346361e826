//! `login`.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;

use super::{Home, SECRET, access, fetch, fetched, profile, refused, set_mode};
use crate::fake::{Answer, FakeService, token};
use crate::harness::{Output, Run, Server, trayscan};

/// A server whose secret must never be shown.
fn server() -> Server {
    Server::start(&["--client-secret", SECRET])
}

/// Runs `login` with `secret` on standard input. The secret must not be shown.
fn login(home: &Home, flags: &[impl AsRef<str>], secret: &str) -> Output {
    let mut command = home.command(&["login", "--client-secret-file", "-"]);
    let flags = flags.iter().map(AsRef::as_ref);
    let ended = command.args(flags).output_for(secret);
    assert!(!format!("{ended:?}").contains("hunter2"), "{ended:?}");
    ended
}

fn secret_file(home: &Home) -> PathBuf {
    home.config().with_file_name("config.default.secret")
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

/// The names of all files beside the config file.
fn files(home: &Home) -> Vec<String> {
    let Ok(entries) = fs::read_dir(home.config().parent().unwrap()) else {
        return Vec::new();
    };
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort_unstable();
    names
}

#[test]
fn login_checks_the_credentials_and_saves_them() {
    let (server, home) = (server(), Home::empty());
    let ended = login(&home, &access(&server), SECRET).expect(0);
    assert_eq!(ended.stdout.lines().count(), 8, "the steps: {ended:?}");
    assert!(ended.stderr.starts_with("saved the profile `default`"));
    let (config, secret) = (home.config(), secret_file(&home));
    let expected = format!(
        "default_profile = \"default\"\n\n[profiles.default]\nbase_url = \"http://{}\"\n\
         client_id = \"{}\"\nclient_secret_file = \"{}\"\n",
        server.address,
        server.client_id,
        secret.display()
    );
    assert_eq!(text(&config), expected);
    assert_eq!(text(&secret), format!("{SECRET}\n"));
    assert_eq!((mode(&config), mode(&secret)), (0o600, 0o600));
    assert_eq!(mode(config.parent().unwrap()), 0o700);
    assert_eq!(files(&home), ["config.default.secret", "config.toml"]);
    let ended = fetch(&home).output();
    fetched(&ended);
    assert!(!ended.stderr.contains("warning"), "{ended:?}");

    let ended = login(&home, &["--message-format=json"], SECRET).expect(0);
    let last: Value = serde_json::from_str(ended.stderr.lines().last().unwrap()).unwrap();
    let result = &last["result"];
    assert_eq!(
        (&result["ok"], &result["profile"]),
        (&true.into(), &"default".into())
    );
    assert_eq!(result["config"], config.to_str().unwrap());
    assert_eq!(result["client_secret_file"], secret.to_str().unwrap());
}

#[test]
fn a_second_login_replaces_the_secret_and_keeps_the_rest() {
    let server = server();
    let line = "retries = 2 # few\nclient_secret = \"hunter2-old\" # rotate in May\n\n# Ours.\n[targets.Leek]";
    let before = format!("# Mine.\n{}", profile(&server, line));
    let home = Home::with(&before);
    let real = home.path().join("elsewhere.toml");
    fs::rename(home.config(), &real).unwrap();
    symlink(&real, home.config()).unwrap();
    set_mode(&real, 0o640);
    // Nothing but the secret is given: the profile has the rest.
    login(&home, &["-q"], SECRET).expect(0);
    assert!(home.config().is_symlink());
    assert_eq!(mode(&real), 0o640);
    let secret = format!("client_secret_file = \"{}\"", secret_file(&home).display());
    let after = before
        .replace("# Mine.\n", "default_profile = \"default\"\n\n# Mine.\n")
        .replace("client_secret = \"hunter2-old\"", &secret);
    assert_eq!(text(&real), after);
    fetched(&fetch(&home).output());

    fs::write(secret_file(&home), "hunter2-older").unwrap();
    set_mode(&secret_file(&home), 0o644);
    login(&home, &["-q"], SECRET).expect(0);
    assert_eq!(text(&secret_file(&home)), format!("{SECRET}\n"));
    assert_eq!(mode(&secret_file(&home)), 0o600);
    assert_eq!(text(&real), after);

    // A link to the secret is followed, too.
    let vault = home.path().join("vault");
    fs::rename(secret_file(&home), &vault).unwrap();
    fs::write(&vault, "hunter2-older").unwrap();
    symlink(&vault, secret_file(&home)).unwrap();
    login(&home, &["-q"], SECRET).expect(0);
    assert!(secret_file(&home).is_symlink());
    assert_eq!(text(&vault), format!("{SECRET}\n"));
    assert_eq!(text(&real), after);
}

#[test]
fn a_secret_in_the_config_file_moves_to_a_file_of_its_own() {
    let server = server();
    let home = Home::with(&profile(&server, &format!("client_secret = \"{SECRET}\"")));
    let ended = home.run(&["login"]).expect(0);
    let place = format!("and the secret in `{}`", secret_file(&home).display());
    assert!(ended.stderr.contains(&place), "{ended:?}");
    assert!(!text(&home.config()).contains("hunter2"));
    assert_eq!(text(&secret_file(&home)), format!("{SECRET}\n"));
    fetched(&fetch(&home).output());
}

#[test]
fn each_config_file_has_secrets_of_its_own() {
    let (server, home) = (server(), Home::empty());
    for config in ["prod.toml", "prod.conf", "prod"] {
        login(
            &home,
            &[&access(&server)[..], &["--config".into(), config.into()]].concat(),
            SECRET,
        )
        .expect(0);
    }
    for name in [
        "prod.default.secret",
        "prod.conf.default.secret",
        "prod.default.client-secret",
    ] {
        assert!(home.path().join(name).is_file(), "{name}");
    }
}

#[test]
fn a_key_that_is_set_during_the_check_is_kept() {
    let home = Home::with("[profiles.default]\n");
    let config = home.config();
    let service = FakeService::start(move |request| {
        let before = fs::read_to_string(&config).unwrap();
        if !before.contains("retries") {
            fs::write(&config, before + "retries = 7\n").unwrap();
        }
        match request.path() {
            path if path.ends_with("/auth") => token(),
            _ => Answer::error(404, "gone"),
        }
    });
    let flags = [
        "--base-url",
        &service.base_url(),
        "--client-id=x",
        "--force",
    ];
    login(&home, &flags, SECRET).expect(0);
    let after = text(&home.config());
    assert!(
        after.contains("retries = 7\n") && after.contains("client_id = \"x\"\n"),
        "{after}"
    );
}

#[test]
fn every_failed_step_of_the_credentials_counts() {
    let home = Home::empty();
    let service = FakeService::start(|request| match request.path() {
        "/v2/auth" => token(),
        "/v2/batches" => Answer::error(500, "ill"),
        _ => Answer::error(401, "unknown client"),
    });
    let flags = [
        "--base-url",
        &service.base_url(),
        "--client-id=x",
        "--retries=0",
    ];
    let ended = login(&home, &flags, SECRET).expect(4);
    let line = "error: nothing was saved, because the check failed: auth v1\n";
    assert_eq!(ended.stderr, line);
    assert_eq!(files(&home), [""; 0]);
    let ended = login(&home, &[&flags[..], &["--force"]].concat(), SECRET).expect(0);
    let warning = "warning: saving the profile although the check failed: batches v2, auth v1\n";
    assert!(ended.stderr.starts_with(warning), "{ended:?}");
}

#[test]
fn a_failed_check_saves_nothing_unless_forced() {
    let server = server();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let closed = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let unreachable = ["--base-url", &closed, "--client-id", "x"].map(str::to_owned);
    for (flags, secret, code, step) in [
        (access(&server), "hunter2-wrong", 4, "auth v2, auth v1"),
        (unreachable, SECRET, 5, "connection"),
    ] {
        let home = Home::empty();
        let ended = login(&home, &flags, secret).expect(code);
        let line = format!("error: nothing was saved, because the check failed: {step}\n");
        assert_eq!(ended.stderr, line);
        for step in step.split(", ") {
            assert!(ended.stdout.contains(&format!("FAILED  {step}")));
        }
        assert!(ended.stdout.contains("hint: "), "{ended:?}");
        assert_eq!(files(&home), [""; 0]);
        // Quiet: the error says why. For programs as well.
        let quiet = login(&home, &[&flags[..], &["-q".into()]].concat(), secret).expect(code);
        assert_eq!(quiet.stdout, "");
        assert!(quiet.stderr.contains("  hint: "), "{quiet:?}");
        let json = [&flags[..], &["--message-format=json".into()]].concat();
        let error = login(&home, &json, secret).expect(code).error();
        assert!(error["hint"].is_string(), "{error}");
        assert!(!home.path().join(".config").exists());

        let forced = [&flags[..], &["--force".into()]].concat();
        let ended = login(&home, &forced, secret).expect(0);
        let warning = format!("warning: saving the profile although the check failed: {step}\n");
        assert!(ended.stderr.starts_with(&warning), "{ended:?}");
        assert_eq!(text(&secret_file(&home)), format!("{secret}\n"));
    }
}

#[test]
fn settings_that_were_given_are_saved() {
    let (server, home) = (server(), Home::empty());
    let secret = home.path().join("my secret");
    fs::write(&secret, SECRET).unwrap();
    set_mode(&secret, 0o600);
    fs::write(home.path().join("ca.pem"), rcgen_certificate()).unwrap();
    let flags = [
        "--profile=Prod/2",
        "--client-secret-file=my secret",
        "--api=v2",
        "--ca-cert=ca.pem",
        "--time-zone=Europe/Amsterdam",
        "--retries=1",
        "--allow-http",
    ];
    let mut command = home.command(&["login"]);
    command.args(access(&server)).args(flags);
    command.output().expect(0);
    let folder = home.path().canonicalize().unwrap();
    let folder = folder.display();
    let expected = format!(
        "default_profile = \"Prod/2\"\n\n[profiles.\"Prod/2\"]\nbase_url = \"http://{}\"\n\
         client_id = \"{}\"\napi = \"v2\"\nca_cert = \"{folder}/ca.pem\"\n\
         time_zone = \"Europe/Amsterdam\"\nclient_secret_file = \"{folder}/my secret\"\n",
        server.address, server.client_id
    );
    assert_eq!(text(&home.config()), expected);
    assert_eq!(files(&home), ["config.toml"], "the secret is not copied");
    fetched(&fetch(&home).output());

    // A pipe cannot be referred to, and the default stays.
    let mut command = home.command(&["login", "--profile=b", "--client-secret-file=/dev/stdin"]);
    let ended = command.args(access(&server)).output_for(SECRET).expect(0);
    assert!(ended.stderr.ends_with("use it with `--profile b`\n"));
    assert_eq!(files(&home), ["config.b.secret", "config.toml"]);
    fetched(&fetch(&home).args(["--profile", "b"]).output());
    assert!(text(&home.config()).starts_with("default_profile = \"Prod/2\"\n"));
}

#[test]
fn an_earlier_secret_that_is_no_longer_used_is_named() {
    let (server, home) = (server(), Home::empty());
    login(&home, &access(&server), SECRET).expect(0);
    let mine = home.path().join("mine");
    fs::write(&mine, SECRET).unwrap();
    set_mode(&mine, 0o600);
    let own = secret_file(&home);
    for (file, is_named) in [(&own, false), (&mine, true)] {
        let mut command = home.command(&["login", "--client-secret-file"]);
        let ended = command.arg(file).args(access(&server)).output().expect(0);
        let note = "an earlier secret is still in `";
        assert_eq!(ended.stderr.contains(note), is_named, "{ended:?}");
    }
    assert!(own.exists());
}

#[test]
fn the_flags_that_select_a_profile_can_be_pasted() {
    let (server, home) = (server(), Home::empty());
    login(&home, &access(&server), SECRET).expect(0);
    for (flags, usage) in [
        (
            &["--profile", "Näme 1"][..],
            "; use it with `--profile 'Näme 1'`\n",
        ),
        (
            &["--config", "new dir/c.toml"],
            "; use it with `--config 'new dir/c.toml'`\n",
        ),
        (
            &["--config", "new dir/c.toml", "--profile", "two"],
            "; use it with `--config 'new dir/c.toml' --profile two`\n",
        ),
    ] {
        let given: Vec<&str> = flags.to_vec();
        let all = access(&server);
        let all: Vec<&str> = all.iter().map(String::as_str).chain(given).collect();
        let ended = login(&home, &all, SECRET).expect(0);
        assert!(ended.stderr.ends_with(usage), "{ended:?}");
        fetched(&fetch(&home).args(flags).output());
    }
}

#[test]
fn plain_http_to_another_machine_is_saved_as_allowed() {
    // Not a loopback address, although it leads to this machine.
    let args = ["serve", "--listen", "0.0.0.0:0", "--format", "json"];
    let server = Server::spawn(trayscan(
        &[&args[..], &["--client-secret", SECRET]].concat(),
    ));
    let url = format!("http://0.0.0.0:{}", server.address.port());
    let flags = ["--base-url", &url, "--client-id", &server.client_id];
    let home = Home::empty();
    login(&home, &flags, SECRET).expect(13);
    let allowed = [&flags[..], &["--allow-http"]].concat();
    login(&home, &allowed, SECRET).expect(0);
    assert!(text(&home.config()).contains("\nallow_http = true\n"));
    fetched(&fetch(&home).output());
}

fn rcgen_certificate() -> String {
    let certified = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]);
    certified.unwrap().cert.pem()
}

#[test]
fn a_mistake_is_named_before_anything_is_sent() {
    let (server, home) = (server(), Home::empty());
    let run = |flags: &[&str]| home.command(&["login"]).args(flags).output();
    let url = format!("http://{}", server.address);
    refused(&run(&[]), &["the base URL is missing", "`--base-url`"]);
    let url_only = ["--base-url", &url];
    refused(
        &run(&url_only),
        &["the client ID is missing", "`--client-id`"],
    );
    let no_secret = [&url_only[..], &["--client-id", "a"]].concat();
    let words = ["the client secret is missing", "`--client-secret-file`"];
    refused(&run(&no_secret), &words);
    for (url, code, words) in [
        (
            "scan.example.com/api",
            2,
            "did you mean https://scan.example.com/api?",
        ),
        (
            "https://u:hunter2@scan.example.com",
            2,
            "a user name or a password",
        ),
        (
            "https://scan.example.com/api/v2/",
            2,
            "use https://scan.example.com/api\n",
        ),
        (
            "http://scan.example.com",
            13,
            "plain http to another machine",
        ),
    ] {
        let flags = ["--base-url", url, "--client-id=a"];
        let ended = login(&home, &flags, SECRET).expect(code);
        assert!(ended.stderr.contains(words), "{ended:?}");
    }
    refused(&run(&["--sandbox"]), &["needs no login"]);
    refused(&run(&["--profile", ""]), &["`--profile NAME`"]);
    assert!(!home.path().join(".config").exists());
    let log = server.stop().stderr;
    assert!(log.contains("stopped after 0 requests"), "{log}");
}

#[test]
fn an_invalid_config_file_is_left_unchanged() {
    let server = server();
    for (broken, words) in [
        ("# a\n[profiles.default\n", "invalid TOML on line 2"),
        (
            "[profiles.default]\nretry = 1\n",
            "unknown key `profiles.default.retry` on line 2",
        ),
    ] {
        let home = Home::with(broken);
        refused(&login(&home, &access(&server), SECRET), &[words]);
        assert_eq!(text(&home.config()), broken);
        assert_eq!(files(&home), ["config.toml"]);
    }
}

#[test]
fn config_and_secret_are_written_both_or_not_at_all() {
    let server = server();
    let before = profile(&server, "client_secret_file = \"~/old\"");
    // The config file is protected.
    let home = Home::with(&before);
    fs::write(secret_file(&home), "hunter2-old").unwrap();
    set_mode(&home.config(), 0o400);
    let ended = login(&home, &access(&server), SECRET).expect(8);
    assert!(ended.stderr.contains("write-protected"), "{ended:?}");
    assert_eq!(ended.stdout, "", "found before the first step");
    assert_eq!(text(&secret_file(&home)), "hunter2-old");
    assert_eq!(text(&home.config()), before);

    // The secret cannot be written.
    let home = Home::with(&before);
    fs::create_dir(secret_file(&home)).unwrap();
    login(&home, &access(&server), SECRET).expect(8);
    assert_eq!(text(&home.config()), before);
    assert_eq!(files(&home), ["config.default.secret", "config.toml"]);

    // A file is where the folder should be.
    let home = Home::empty();
    fs::write(home.path().join(".config"), "").unwrap();
    login(&home, &access(&server), SECRET).expect(2);
    assert_eq!(text(&home.path().join(".config")), "");
}

/// A config file that is mounted into a container cannot be replaced.
#[cfg(target_os = "linux")]
#[test]
fn the_old_secret_stays_if_the_config_file_cannot_be_replaced() {
    let server = server();
    for (old, is_link) in [
        (Some("hunter2-old"), false),
        (Some("hunter2-old"), true),
        (None, false),
    ] {
        let before = profile(&server, "client_secret_file = \"~/old\"");
        let home = Home::with(&before);
        if let Some(old) = old {
            let file = if is_link {
                symlink("../../vault", secret_file(&home)).unwrap();
                home.path().join("vault")
            } else {
                secret_file(&home)
            };
            fs::write(&file, old).unwrap();
            set_mode(&file, 0o640);
        }
        let mut command = home.command(&["login"]);
        command.args(access(&server));
        command.args(["--client-secret", SECRET]);
        if !Run::new("strace").arg("-V").succeeds() {
            eprintln!("skipped: this machine has no `strace`");
            return;
        }
        let mut command = command.injecting("rename", "error=EBUSY:when=2");
        let ended = command.output().expect(8);
        assert!(ended.stderr.contains("config.toml"), "{ended:?}");
        assert_eq!(text(&home.config()), before);
        assert_eq!(fs::read_to_string(secret_file(&home)).ok().as_deref(), old);
        assert_eq!(secret_file(&home).is_symlink(), is_link);
        assert!(old.is_none() || mode(&secret_file(&home)) == 0o640);
        assert!(files(&home).iter().all(|name| !name.starts_with('.')));
    }
}

/// Runs `line` on a terminal, types each answer when its question is shown, and returns everything shown.
///
/// In `line`, `$T` is the program. `None` if `script` is not installed.
fn on_terminal(home: &Home, line: &str, answers: &[(&str, &str)]) -> Option<String> {
    let mut command = Run::new("script");
    command
        .args(["-q", "-e", "-c", line, "/dev/null"])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("SHELL", "/bin/sh")
        .env("TERM", "dumb")
        .env("HOME", home.path())
        .env("T", env!("CARGO_BIN_EXE_trayscan"))
        .stdin(Stdio::piped());
    if !Run::new("script").arg("--version").succeeds() {
        eprintln!("skipped: this machine has no `script`");
        return None;
    }
    let mut running = command.start();
    let mut shown = String::new();
    for (question, answer) in answers {
        let start = shown.len();
        while !shown[start..].ends_with(question) {
            let mut byte = [0];
            let stdout = running.stdout.as_mut().unwrap();
            assert_eq!(stdout.read(&mut byte).unwrap(), 1, "{shown}");
            shown.push(byte[0].into());
        }
        let stdin = running.stdin.as_mut().unwrap();
        stdin.write_all(answer.as_bytes()).unwrap();
    }
    let mut rest = String::new();
    let stdout = running.stdout.as_mut().unwrap();
    stdout.read_to_string(&mut rest).unwrap();
    assert!(!shown.contains("hunter2") && !rest.contains("hunter2"));
    Some((shown + &rest).replace("\r\n", "\n"))
}

/// A profile with a secret in each of the places that a config file may name.
fn profiles_with_secrets(server: &Server) -> Vec<Home> {
    let lines = [
        format!("client_secret = \"{SECRET}\""),
        "client_secret_file = \"~/mine\"".to_owned(),
        "client_secret_command = \"cat ~/mine\"".to_owned(),
    ];
    let homes = lines.iter().map(|line| {
        let home = Home::with(&profile(server, line));
        let mine = home.path().join("mine");
        fs::write(&mine, SECRET).unwrap();
        set_mode(&mine, 0o600);
        home
    });
    homes.collect()
}

#[test]
fn a_stored_secret_is_never_sent_to_another_address() {
    let server = server();
    let other = FakeService::start(|_| token());
    for home in profiles_with_secrets(&server) {
        let before = text(&home.config());
        // Another path of the same service is no other address.
        let same = format!("http://{}/none", server.address);
        let ended = home.run(&["login", "--base-url", &same, "--retries=0"]);
        assert!(!ended.stderr.contains("the stored secret"), "{ended:?}");
        let flags = ["login", "--force", "--base-url", &other.base_url()];
        let words = [
            "the stored secret is for another address; the client secret for this one is missing",
            "there is no terminal",
            "`--client-secret-file`",
            "TRAYSCAN_CLIENT_SECRET",
        ];
        refused(&home.run(&flags), &words);
        let url = other.base_url();
        let mut command = home.command(&["login", "--force"]);
        refused(&command.env("TRAYSCAN_BASE_URL", &url).output(), &words);
        assert_eq!(text(&home.config()), before);
        assert_eq!(other.requests().len(), 0);
    }
}

#[test]
fn a_person_is_asked_for_the_secret_of_another_address() {
    let (old, new) = (server(), Server::start(&["--client-secret", "hunter2-new"]));
    for home in profiles_with_secrets(&old) {
        let question = format!("Base URL [http://{}]: ", old.address);
        let url = format!("http://{}\n", new.address);
        let answers = [
            (&*question, &*url),
            ("Client ID [sandbox]: ", "\n"),
            (
                "note: the stored secret is for another address, so it is not used\r\n",
                "",
            ),
            ("Client secret (hidden): ", "\n"),
            ("Client secret (hidden): ", "hunter2-new\n"),
        ];
        let Some(shown) = on_terminal(&home, &line(""), &answers) else {
            return;
        };
        assert!(shown.ends_with("code 0\necho\n"), "{shown}");
        assert_eq!(text(&secret_file(&home)), "hunter2-new\n");
        fetched(&fetch(&home).output());
    }
}

/// Runs `login` with these flags, then prints its exit code and whether the terminal shows what is typed.
fn line(flags: &str) -> String {
    format!("trap : INT; $T login {flags}; echo code $?; stty -a | grep -ow -e '-echo' -e 'echo'")
}

#[test]
fn a_person_is_asked_until_each_answer_is_right() {
    let (server, home) = (server(), Home::empty());
    let url = format!("http://{}", server.address);
    let with_version = format!("{url}/v2\n");
    let with_slash = format!("  {url}/ \n");
    let secret = format!("{SECRET}\n");
    let answers = [
        ("Base URL: ", "\n"),
        ("Base URL: ", "scan.example.com\n"),
        ("scan.example.com/api\r\nBase URL: ", &with_version),
        ("contains the API version; use http://127.0.0.1:", ""),
        ("Base URL: ", &with_slash),
        ("Client ID: ", "\n"),
        ("Client ID: ", "sandbox\n"),
        ("Client secret (hidden): ", "\n"),
        ("Client secret (hidden): ", &secret),
    ];
    let Some(shown) = on_terminal(&home, &line(""), &answers) else {
        return;
    };
    assert!(shown.ends_with("code 0\necho\n"), "{shown}");
    let settings = format!("{url} (from the prompt) as `sandbox` (from the prompt)");
    assert!(shown.contains(&settings), "{shown}");
    fetched(&fetch(&home).output());

    // The second time, an empty answer keeps what is there.
    let before = text(&home.config());
    let url_question = format!("Base URL [{url}]: ");
    let keep = "Client secret (hidden; empty keeps the current one): ";
    let answers = [
        (&*url_question, "\n"),
        ("Client ID [sandbox]: ", "\n"),
        (keep, "\n"),
    ];
    let shown = on_terminal(&home, &line(""), &answers).unwrap();
    assert!(shown.ends_with("code 0\necho\n"), "{shown}");
    assert_eq!(text(&home.config()), before);
    fetched(&fetch(&home).output());

    // What is given is not asked for.
    let flags = format!("--base-url {url} --client-id sandbox --client-secret-file - --profile b");
    let answers = [("Client secret (hidden): ", &*secret)];
    let shown = on_terminal(&home, &line(&flags), &answers).unwrap();
    assert!(shown.ends_with("code 0\necho\n"), "{shown}");
}

#[test]
fn with_json_messages_nothing_is_asked() {
    let home = Home::empty();
    let Some(shown) = on_terminal(&home, &line("--message-format json"), &[]) else {
        return;
    };
    let words = "the base URL is missing, and `--message-format json` asks no questions";
    assert!(
        shown.contains(words) && shown.contains("code 2\n"),
        "{shown}"
    );
}

#[test]
fn ctrl_c_and_ctrl_d_save_nothing_and_show_again_what_is_typed() {
    let home = Home::empty();
    let flags = "--base-url http://127.0.0.1:9 --client-id x";
    let secret = "Client secret (hidden): ";
    for (flags, question, key, message) in [
        (
            "",
            "Base URL: ",
            "\u{3}",
            "error: ended by SIGINT (Ctrl-C); nothing was saved",
        ),
        (
            "",
            "Base URL: ",
            "\u{4}",
            "error: the input ended; nothing was saved",
        ),
        (
            flags,
            secret,
            "hunter2\u{3}",
            "error: ended by SIGINT (Ctrl-C); nothing was saved",
        ),
        (
            flags,
            secret,
            "\u{4}",
            "error: the input ended; nothing was saved",
        ),
    ] {
        let Some(shown) = on_terminal(&home, &line(flags), &[(question, key)]) else {
            return;
        };
        let code = if key == "\u{4}" { 2 } else { 130 };
        assert!(shown.contains(&format!("\n{message}\n")), "{shown:?}");
        assert!(
            shown.ends_with(&format!("\ncode {code}\necho\n")),
            "{shown:?}"
        );
        assert!(!home.path().join(".config").exists());
    }
}
