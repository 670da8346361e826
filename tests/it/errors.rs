//! Usage errors, failing outputs, panics: one clear message and the right exit code.

use std::fs::File;

use crate::harness::{Output, Run, run, trayscan};

#[test]
fn no_command_shows_the_help_with_code_2() {
    let ended = run(&[]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""));
    assert!(ended.stderr.contains("Usage: trayscan"), "{ended:?}");
}

#[cfg(unix)]
#[test]
fn text_that_is_not_utf_8_is_named() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    let broken = OsStr::from_bytes(b"\xff.csv");
    let start = OsStr::from_bytes(b"--start=\xfe");
    for (args, variable, name) in [
        (
            &[OsStr::new("--period"), broken][..],
            None,
            "the value of `--period`",
        ),
        // A path may have any bytes.
        (
            &[OsStr::new("-o"), broken, start],
            None,
            "the value of `--start`",
        ),
        (
            &[OsStr::new("-o"), broken],
            Some("TRAYSCAN_BASE_URL"),
            "TRAYSCAN_BASE_URL",
        ),
    ] {
        let mut command = trayscan(&["export"]);
        command.args(args);
        if let Some(variable) = variable {
            command.env(variable, broken);
        }
        let ended = command.output().expect(2);
        let message = format!("error: {name} is not text in UTF-8\n");
        assert!(ended.stderr.starts_with(&message), "{ended:?}");
    }
}

#[test]
fn help_and_version_go_to_standard_output_with_code_0() {
    for args in [
        &["--help"][..],
        &["-h"],
        &["serve", "--help"],
        &["man", "-h"],
        &["completions", "-h"],
    ] {
        let ended = run(args);
        assert_eq!(
            (ended.code, ended.stderr.as_str()),
            (Some(0), ""),
            "{args:?}"
        );
        assert!(ended.stdout.contains("Usage: trayscan"), "{ended:?}");
    }
    assert_eq!(
        run(&["help", "serve"]).stdout,
        run(&["serve", "--help"]).stdout
    );
    assert_eq!(run(&["help"]).stdout, run(&["--help"]).stdout);
    let version = format!("trayscan {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(run(&["-V"]).expect(0).stdout, version);
    let long = run(&["--version"]).expect(0).stdout;
    assert_eq!(run(&["version"]).expect(0).stdout, long);
    let lines: Vec<&str> = long.lines().collect();
    let [first, features, build] = lines[..] else {
        panic!("{long}");
    };
    assert_eq!(format!("{first}\n"), version);
    for (name, is_on) in [
        ("cloud", cfg!(feature = "cloud")),
        ("postgres", cfg!(feature = "postgres")),
    ] {
        let is_listed = features.contains(name) && !features.contains("none");
        assert_eq!(is_listed, is_on, "{features}");
    }
    let (arch, os) = (std::env::consts::ARCH, std::env::consts::OS);
    assert!(build.starts_with(&format!("build: {arch}-{os}")), "{build}");
    assert!(!long.contains('/'), "no paths: {long}");
}

#[test]
fn usage_errors_end_with_code_2_and_a_hint() {
    for (args, says) in [
        (&["serv"][..], "did you mean `trayscan serve`?"),
        (&["serve", "--batch", "5"], "did you mean `--batches`?"),
        (
            &["serve", "--batches", "many"],
            "`--batches` is `many`; it must be a whole number, such as 1000",
        ),
        (
            &["serve", "--batches", "20000001"],
            "`--batches` is `20000001`; it must be a whole number, at most 20000000, such as 1000",
        ),
        (
            &["serve", "--page-size", "0"],
            "`--page-size` is `0`; it must be a whole number, at least 1, such as 500",
        ),
        (
            &["serve", "--token-ttl", "15"],
            "`--token-ttl` is `15`; it must be a number with a unit, such as 500ms",
        ),
        (
            &["serve", "--listen", "example.com:80"],
            "it must be an IP address and a port, such as 127.0.0.1:8080",
        ),
        (
            &["export", "--seed", "1"],
            "`trayscan export` has no flag `--seed`\n  hint: `--seed` is a flag of `trayscan serve`\n",
        ),
        (
            &["exprot"],
            "`trayscan` has no command `exprot`\n  hint: did you mean `trayscan export`?\n",
        ),
        (
            &["serve", "--client-secret", ""],
            "`--client-secret` is empty",
        ),
        (
            &["serve", "-q", "-v"],
            "`--quiet` cannot be used with `--verbose`",
        ),
        (
            &["completions", "tcsh"],
            "SHELL is `tcsh`; it must be bash, elvish, fish, powershell or zsh",
        ),
        (
            &["man", "nothing"],
            "it must be export, sync, summary, report, verify, check, serve, login, config, completions, man, archive, config-file,",
        ),
    ] {
        let ended = run(args);
        assert_eq!(
            (ended.code, ended.stdout.as_str()),
            (Some(2), ""),
            "{args:?}"
        );
        assert!(ended.stderr.starts_with("error: "), "{ended:?}");
        assert!(ended.stderr.contains(says), "{ended:?}");
        // One format: the error, then a hint, and no usage line.
        assert!(!ended.stderr.contains("Usage:"), "{ended:?}");
        assert_eq!(ended.stderr.lines().count(), 2, "{ended:?}");
        assert!(ended.stderr.contains("\n  hint: "), "{ended:?}");
    }
}

#[test]
fn an_invalid_variable_value_names_the_variable() {
    for (variable, value, says) in [
        (
            "TRAYSCAN_PARALLEL",
            "many",
            "it must be a whole number, such as 4",
        ),
        (
            "TRAYSCAN_TIMEOUT",
            "5",
            "it must be a number with a unit, such as 500ms",
        ),
        ("TRAYSCAN_API", "v3", "it must be auto, v1 or v2"),
        ("TRAYSCAN_ALLOW_HTTP", "maybe", "it must be true or false"),
        (
            "TRAYSCAN_TIME_ZONE",
            "+02:00",
            "it must be the name of a time zone, such as Europe/Amsterdam or UTC",
        ),
        ("TRAYSCAN_MESSAGE_FORMAT", "xml", "it must be text or json"),
    ] {
        let flag = variable.replace("TRAYSCAN_", "--");
        let flag = flag.replace('_', "-").to_lowercase();
        let ended = trayscan(&["export"])
            .env(variable, value)
            .output()
            .expect(2);
        let message = format!("error: {variable} is `{value}`; {says}");
        assert!(ended.stderr.starts_with(&message), "{ended:?}");
        // A flag overrides the variable, so it is the one to name.
        let args = ["export", &format!("{flag}=wrong")];
        let ended = trayscan(&args).env(variable, value).output();
        let message = format!("error: `{flag}` is `wrong`; {says}");
        assert!(ended.stderr.starts_with(&message), "{ended:?}");
    }
}

#[test]
fn errors_can_be_one_json_object() {
    for args in [
        &["serve", "--message-format", "json", "--fault", "x"][..],
        &["--message-format=json", "serve", "--batches", "x"],
        &["--message-format=json"],
    ] {
        let ended = run(args).expect(2);
        assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
        let error = ended.error();
        let keys: Vec<&String> = error.as_object().unwrap().keys().collect();
        assert_eq!(
            keys,
            [
                "code",
                "detail",
                "hint",
                "kind",
                "message",
                "request",
                "retry_later",
                "status"
            ]
        );
        assert_eq!(
            (&error["code"], &error["kind"]),
            (&2.into(), &"usage".into())
        );
        assert_eq!(error["retry_later"], false);
        assert!(
            !error["message"].as_str().unwrap().starts_with("error"),
            "{error}"
        );
        assert!(error["hint"].is_string());
    }
    let output = trayscan(&["serv"])
        .env("TRAYSCAN_ERROR_FORMAT", "json")
        .raw();
    assert_eq!(
        Output::of(output).error()["message"],
        "`trayscan` has no command `serv`"
    );
}

#[test]
fn a_secret_given_in_the_wrong_place_is_not_repeated() {
    for args in [
        &["serve", "--client-secrt=hunter2"][..],
        &["serve", "--client-secret=hunter2", "--batches", "x"],
        &[
            "serve",
            "--client-secret=hunter2",
            "--client-secret=hunter2",
        ],
        &["serve", "--client-secret", "hunter2", "--fault", "x"],
        &["serve", "--client-secret", "=", "hunter2"],
        &["serve", "--client-secret", "--hunter2"],
        &["serve", "--client-secret", "-hunter2"],
        &["export", "--client-secret=x", "--allow-http", "hunter2"],
        &["serve", "--listen", "me:hunter2@host"],
        &["export", "postgres://me:hunter2@host/db"],
    ] {
        for format in ["text", "json"] {
            let ended = run(&[args, &["--message-format", format]].concat()).expect(2);
            assert!(!ended.stderr.contains("hunter2"), "{ended:?}");
        }
    }
}

#[test]
fn colour_is_used_on_terminals_unless_overridden() {
    let coloured = |args: &[&str]| run(args).stderr.contains('\u{1b}');
    assert!(!coloured(&["serv"]));
    assert!(coloured(&["serv", "--color", "always"]));
    assert!(coloured(&["serve", "--fault", "x", "--color=always"]));
    assert!(!coloured(&["serve", "--fault", "x", "--color=never"]));
}

#[test]
fn a_full_disk_ends_with_code_8() {
    for args in [
        &["man"][..],
        &["completions", "zsh"],
        &["--help"],
        &["serve", "--listen", "127.0.0.1:0"],
    ] {
        let Ok(full) = File::create("/dev/full") else {
            eprintln!("skipped: this machine has no /dev/full");
            return;
        };
        let ended = trayscan(args).stdout(full).output();
        assert_eq!(ended.code, Some(8), "{args:?}: {ended:?}");
        assert!(
            ended
                .stderr
                .starts_with("error: cannot write to standard output\n"),
            "{ended:?}"
        );
    }
}

#[test]
fn a_closed_pipe_ends_quietly_with_141() {
    for args in [
        &["man"][..],
        &["completions", "zsh"],
        &["serve", "--listen", "127.0.0.1:0"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let ended = trayscan(args).stdout(writer).output();
        assert_eq!(
            (ended.code, ended.stderr.as_str()),
            (Some(141), ""),
            "{args:?}"
        );
    }
}

/// Set in the child process that should panic.
const PANIC: &str = "TRAYSCAN_TEST_PANIC";

/// Runs the current test in a child process, where it panics as the program would.
fn panicking(how: &str) -> Output {
    let this = std::env::current_exe().unwrap();
    let test = "errors::a_panic_ends_with_code_1_and_one_line";
    let output = Run::new(this)
        .args(["--exact", test, "--nocapture", "--quiet"])
        .env(PANIC, how)
        .env("RUST_BACKTRACE", "1")
        .raw();
    Output::of(output)
}

#[test]
#[allow(clippy::exit, reason = "the child exits as the program does")]
fn a_panic_ends_with_code_1_and_one_line() {
    match std::env::var(PANIC).as_deref() {
        Ok("fixed") => std::process::exit(trayscan::guarded(|| panic!("out of cheese")).into()),
        Ok("formatted") => {
            let secret = "hunter2";
            std::process::exit(trayscan::guarded(move || panic!("bad {secret}")).into());
        }
        _ => {}
    }
    let ended = panicking("fixed");
    assert_eq!(ended.code, Some(1));
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    assert!(
        ended.stderr.contains("errors.rs:") && ended.stderr.contains(": out of cheese; "),
        "{ended:?}"
    );
    let ended = panicking("formatted");
    assert_eq!(ended.code, Some(1));
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    assert!(
        !ended.stderr.contains("hunter2"),
        "what is formatted may be secret: {ended:?}"
    );
}

#[cfg(not(feature = "postgres"))]
#[test]
fn a_build_without_postgresql_explains_how_to_enable_it_and_hides_the_password() {
    for args in [
        &[
            "export",
            "--sandbox",
            "-o",
            "postgres://me:hidden-words@host/db",
        ][..],
        &[
            "export",
            "--sandbox",
            "-o",
            "postgresql://me:hidden-words@host/db",
        ],
        &["verify", "postgres://me:hidden-words@host/db"],
    ] {
        let ended = run(args).expect(2);
        assert!(ended.stderr.contains("--features postgres"), "{ended:?}");
        assert!(!ended.stderr.contains("hidden-words"), "{ended:?}");
    }
}

#[test]
fn help_is_also_a_subcommand() {
    for words in [&[][..], &["export"], &["config", "show"]] {
        let asked = run(&[&["help"], words].concat()).expect(0);
        assert_eq!(asked.stdout, run(&[words, &["--help"]].concat()).stdout);
    }
    assert_eq!(run(&["help", "exprot"]).code, Some(2));
}
