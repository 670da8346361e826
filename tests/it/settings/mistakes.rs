//! Mistakes in the config file and in values; what is never printed.

use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::PermissionsExt as _;

use tempfile::TempDir;

use super::{Home, SECRET, VARIABLES, access, fetch, fetched, profile, refused, set_mode};
use crate::harness::{Run, Server, run, trayscan};

#[test]
fn a_wrong_value_names_where_it_came_from() {
    const ACCESS: &str = "base_url = \"https://a.example\"\nclient_id = \"a\"\n";
    let secret = format!("{ACCESS}client_secret = \"hunter2\"\n");
    for (text, line) in [
        ("base_url = \"nonsense\"\nclient_id = \"a\"\n".to_owned(), 2),
        (format!("{ACCESS}client_secret_file = \"/nope\"\n"), 4),
        (format!("{ACCESS}client_secret_command = \"exit 3\"\n"), 4),
        (format!("{secret}ca_cert = \"/nope\"\n"), 5),
        (format!("{secret}parallel = 0\n"), 5),
        (format!("{secret}timeout = \"0s\"\n"), 5),
    ] {
        let home = Home::with(&format!("[profiles.default]\n{text}"));
        let key = text.lines().nth(line - 2).unwrap();
        let (key, _) = key.split_once(" = ").unwrap();
        let file = home.config();
        let place = format!(
            "`profiles.default.{key}` on line {line} in the config file `{}`",
            file.display()
        );
        refused(&home.run(&["export", "-f", "csv"]), &[&place]);
    }
    for (flag, variable, file) in [
        ("--ca-cert", "TRAYSCAN_CA_CERT", secret.as_str()),
        (
            "--client-secret-file",
            "TRAYSCAN_CLIENT_SECRET_FILE",
            ACCESS,
        ),
    ] {
        let home = Home::with(&format!("[profiles.default]\n{file}"));
        let mut command = home.command(&["export", "-f", "csv", flag, "/nope"]);
        refused(&command.output(), &[&format!("`/nope` (`{flag}`)")]);
        let mut command = home.command(&["export", "-f", "csv"]);
        let ended = command.env(variable, "/nope").output();
        refused(&ended, &[&format!("`/nope` ({variable})")]);
    }
}

#[test]
fn unknown_names_in_the_file_are_reported_with_the_known_ones() {
    for (text, words) in [
        (
            "[profiles.default]\nbaseurl = \"x\"\n",
            &[
                "unknown key `profiles.default.baseurl`",
                "did you mean `base_url`?",
                "client_secret_command",
            ][..],
        ),
        (
            "[profiles.default]\nzzz = 1\n",
            &[
                "unknown key `profiles.default.zzz`",
                "available keys: base_url",
            ],
        ),
        (
            "[profiles.other]\nretry = 1\n",
            &["unknown key `profiles.other.retry`"],
        ),
        (
            "defaultprofile = \"a\"\n",
            &["unknown key `defaultprofile`", "`default_profile`"],
        ),
        (
            "client_secret = \"hunter2\"\n",
            &["unknown key `client_secret`", "default_profile"],
        ),
        (
            "[profile.default]\nretries = 1\n",
            &["unknown key `profile`", "did you mean `profiles`?"],
        ),
        (
            "[profiles.a]\nretries = 1\nretries = 2\n",
            &["duplicate key or table on line 3"],
        ),
        (
            "[profiles.a]\n[profiles.b]\n[profiles.a]\n",
            &["duplicate key or table on line 3"],
        ),
        (
            "default_profile = \"c\"\n[profiles.a]\n[profiles.b]\n",
            &[
                "no profile `c` (`default_profile`) in the config file",
                "available profiles: a, b",
            ],
        ),
    ] {
        let home = Home::with(text);
        let file = home.config();
        for command in [&["config", "show"][..], &["export", "--sandbox"]] {
            let ended = home.run(command);
            refused(&ended, words);
            refused(&ended, &[file.to_str().unwrap()]);
        }
    }
    let home = Home::with("[profiles.a]\nretries = 1\n");
    let named = home.run(&["config", "show", "--profile", "b"]);
    refused(&named, &["no profile `b`", "available profiles: a"]);
    let nowhere = Home::empty().run(&["config", "show", "--profile", "b"]);
    refused(&nowhere, &["`b`", "there is no config file"]);
    let lost = Home::empty().run(&["config", "show", "--config", "lost.toml"]);
    refused(&lost, &["cannot read the config file `lost.toml`"]);
}

#[test]
fn a_malformed_file_is_reported_without_its_content() {
    for text in [
        "[profiles.default]\nclient_secret = hunter2\n",
        "[profiles.default]\nclient_secret = \"hunter2\n",
        "[profiles.default]\nclient_secret \"hunter2\"\n",
        "[profiles.default]\nclient_secret = \"hunter2\" hunter2\n",
        "[profiles.default]\nclient_secret = \"hunter2\\q\"\n",
        "[profiles.default]\nclient_secret = ['hunter2']\n",
        "[profiles.default]\nclient_secret = 'hunter2'\nclient_secret = 'hunter2'\n",
        "[profiles.default\nclient_secret = 'hunter2'\n",
        "\u{feff}[profiles.default]\n\u{0}hunter2",
        "profiles = \"hunter2\"\n",
        "[profiles]\ndefault = \"hunter2\"\n",
        "[profiles.default]\napi = \"hunter2\"\n",
        "[profiles.default]\ntimeout = \"hunter2\"\n",
    ] {
        let home = Home::with(text);
        for format in ["text", "json"] {
            let ended = home.run(&["config", "show", "--message-format", format]);
            refused(&ended, &["config file"]);
        }
    }
    let home = Home::with("");
    fs::write(home.config(), b"# hunter2 \xff\n").unwrap();
    refused(&home.run(&["config", "show"]), &["cannot read"]);
}

#[test]
fn a_secret_file_that_others_can_read_gives_one_warning() {
    let server = Server::start(&["--client-secret", SECRET]);
    let home = Home::empty();
    let path = home.path().join("secret");
    fs::write(&path, SECRET).unwrap();
    let export = |file: &str| {
        let mut command = fetch(&home);
        command.args(access(&server));
        command.args(["--client-secret-file", file]);
        command.stdin(fs::File::open(&path).unwrap());
        let ended = command.output();
        fetched(&ended);
        ended
            .stderr
            .matches("warning: other users can read")
            .count()
    };
    for (mode, warnings) in [(0o600, 0), (0o400, 0), (0o640, 1), (0o604, 1), (0o644, 1)] {
        set_mode(&path, mode);
        assert_eq!(export("~/secret"), warnings, "{mode:o}");
        // An open file is not stored there.
        for open in ["-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"] {
            assert_eq!(export(open), 0, "{open}");
        }
    }
}

#[test]
fn a_file_with_a_secret_that_others_can_read_gives_a_warning() {
    let secret = "client_secret = \"hunter2\"\n";
    let file = "client_secret_file = \"a\"\n";
    for (text, mode, warns) in [
        (format!("[profiles.default]\n{secret}"), 0o644, true),
        (format!("[profiles.default]\n{secret}"), 0o640, true),
        (format!("[profiles.default]\n{secret}"), 0o604, true),
        (format!("[profiles.default]\n{secret}"), 0o600, false),
        (format!("[profiles.default]\n{secret}"), 0o400, false),
        (format!("[profiles.default]\n{file}"), 0o644, false),
        ("[profiles.default]\nretries = 1\n".into(), 0o666, false),
        (
            format!("[profiles.default]\nretries = 1\n[profiles.other]\n{secret}"),
            0o644,
            true,
        ),
    ] {
        let home = Home::with(&text);
        set_mode(&home.config(), mode);
        let ended = home.run(&["config", "show"]);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let warned = ended.stderr.starts_with("warning: other users can read");
        assert_eq!(warned, warns, "{mode:o} {text:?}: {ended:?}");
        assert_eq!(ended.stderr.contains("chmod 600"), warns, "{ended:?}");
        assert!(!ended.stderr.contains("hunter2"), "{ended:?}");
    }
}

#[test]
fn config_init_creates_a_private_file_and_never_replaces_one() {
    let home = Home::empty();
    let script = "umask 000; exec \"$0\" config init";
    let begun = Run::new("/bin/sh")
        .args(["-c", script, env!("CARGO_BIN_EXE_trayscan")])
        .env_clear()
        .env("HOME", home.path())
        .output();
    assert_eq!(
        (begun.code, begun.stdout.as_str()),
        (Some(0), ""),
        "{begun:?}"
    );
    let path = home.config();
    assert!(begun.stderr.contains(path.to_str().unwrap()), "{begun:?}");
    let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    let shown = home.run(&["config", "show"]);
    assert_eq!(shown.stdout, Home::empty().run(&["config", "show"]).stdout);
    fs::write(&path, "# mine\n").unwrap();
    let again = home.run(&["config", "init"]);
    assert_eq!(again.code, Some(8), "{again:?}");
    let message = format!(
        "error: `{}` already exists and was left unchanged\n",
        path.display()
    );
    assert!(again.stderr.starts_with(&message), "{again:?}");
    assert_eq!(fs::read(&path).unwrap(), b"# mine\n");
    let elsewhere = home.run(&["config", "init", "--config", "new/folder/a.toml"]);
    assert_eq!(elsewhere.code, Some(0), "{elsewhere:?}");
    assert!(home.path().join("new/folder/a.toml").is_file());
    let here = home.run(&["config", "init", "--config", "b.toml"]);
    assert_eq!(here.code, Some(0), "{here:?}");
    let blocked = home.run(&["config", "init", "--config", "b.toml/c.toml"]);
    assert_eq!(blocked.code, Some(8), "{blocked:?}");
}

#[test]
fn invalid_values_end_with_code_2_and_nothing_is_sent() {
    let server = Server::start(&["--client-secret", SECRET]);
    let line = format!("client_secret = \"{SECRET}\"");
    let valid = Home::with(&profile(&server, &line));
    for (key, value, says) in [
        ("api", "v3", "v3"),
        (
            "parallel",
            "0",
            "is `0`; it must be a whole number, at least 1",
        ),
        ("parallel", "-1", "-1"),
        ("parallel", "many", "many"),
        ("retries", "-1", "-1"),
        ("retries", "1.5", "1.5"),
        ("retries", "99999999999", "99999999999"),
        ("retry_wait", "4", "a number with a unit"),
        ("timeout", "0s", "is `0s`; it must be longer than zero"),
        ("timeout", "soon", "a number with a unit"),
        ("allow_http", "perhaps", "perhaps"),
        (
            "time_zone",
            "europe/amsterdam",
            "is `europe/amsterdam`; it must be written `Europe/Amsterdam`",
        ),
        (
            "time_zone",
            "Amsterdam",
            "is `Amsterdam`; it must be the name of a time zone; did you mean `Europe/Amsterdam`?",
        ),
        (
            "base_url",
            "scan.example.com",
            "https://scan.example.com/api",
        ),
        ("base_url", "ftp://a.example", "neither https nor http"),
        ("base_url", "https://u:hunter2@a.example", "password"),
    ] {
        let flag = format!("--{}={value}", key.replace('_', "-"));
        let export = ["export", "-f", "ndjson", &flag];
        refused(&valid.run(&export), &[says]);
        let mut command = valid.command(&["export", "-f", "ndjson"]);
        let variable = format!("TRAYSCAN_{}", key.to_uppercase());
        refused(&command.env(variable, value).output(), &[says]);
    }
    for (key, value) in [
        ("api", "\"v3\""),
        ("parallel", "0"),
        ("parallel", "\"4\""),
        ("retries", "-1"),
        ("retries", "1.5"),
        ("retry_wait", "4"),
        ("timeout", "\"0s\""),
        ("timeout", "\"soon\""),
        ("allow_http", "\"true\""),
        ("time_zone", "\"Amsterdam\""),
        ("time_zone", "1"),
        ("client_secret_command", "[]"),
    ] {
        let home = Home::with(&profile(&server, &format!("{key} = {value}\n{line}")));
        let ended = home.command(&["export", "-f", "ndjson"]).output();
        refused(&ended, &[key]);
    }
    let log = server.stop().stderr;
    assert!(log.contains("stopped after 0 requests"), "{log}");
}

/// In a script, `--base-url "$URL"` must not fall back to another service if the variable is not set.
#[test]
fn an_empty_flag_is_refused_and_an_empty_variable_counts_as_not_set() {
    let server = Server::start(&["--client-secret", SECRET]);
    let home = Home::with(&profile(&server, &format!("client_secret = \"{SECRET}\"")));
    for flag in [
        "--base-url",
        "--client-id",
        "--client-secret",
        "--client-secret-file",
        "--ca-cert",
        "--time-zone",
    ] {
        let named = format!("`{flag}` needs a value");
        refused(&home.run(&["export", "-f", "ndjson", flag, ""]), &[&named]);
        let joined = format!("{flag}=");
        refused(&home.run(&["export", "-f", "ndjson", &joined]), &[&named]);
        let variable = flag.trim_start_matches('-').replace('-', "_");
        let mut command = home.command(&["export", "-f", "ndjson"]);
        command.env(format!("TRAYSCAN_{}", variable.to_uppercase()), "");
        assert_eq!(command.output().code, Some(0), "{flag}");
    }
}

#[test]
fn flags_that_name_a_service_have_no_effect_with_another_source() {
    let folder = TempDir::new().unwrap();
    let archive = folder.path().join("a.db");
    let archive = archive.to_str().unwrap();
    assert_eq!(run(&["sync", "--sandbox", archive]).code, Some(0));
    for source in [&["--sandbox"][..], &["--archive", archive]] {
        for more in [&[][..], &["--dry-run"]] {
            let args = [
                &["export", "-f", "ndjson", "--client-id", "x"],
                source,
                more,
            ]
            .concat();
            let ended = run(&args);
            assert_eq!(ended.code, Some(0), "{ended:?}");
            let warning = format!("warning: `--client-id` has no effect with `{}`", source[0]);
            assert_eq!(
                ended.stderr.matches(&warning).count(),
                1,
                "{args:?}: {ended:?}"
            );
        }
    }
}

#[test]
fn a_missing_setting_is_named_with_three_ways_to_set_it_and_an_alternative() {
    let home = Home::empty();
    let given = [
        "--base-url=http://127.0.0.1:1",
        "--client-id=a",
        "--client-secret=hunter2",
    ];
    let ways = [
        ["--base-url", "TRAYSCAN_BASE_URL", "`base_url`"],
        ["--client-id", "TRAYSCAN_CLIENT_ID", "`client_id`"],
        ["--client-secret", "TRAYSCAN_CLIENT_SECRET", "client_secret"],
    ];
    for (number, ways) in ways.iter().enumerate() {
        let ended = home.run(&[&["export"], &given[..number]].concat());
        refused(&ended, &["is missing", "--sandbox"]);
        refused(&ended, ways);
    }
    let nothing = home.run(&["check"]);
    assert_eq!(nothing.code, Some(2), "{nothing:?}");
    assert!(
        nothing.stdout.starts_with("FAILED  settings"),
        "{nothing:?}"
    );
}

#[test]
fn help_does_not_depend_on_variables() {
    for command in [
        &["export"][..],
        &["check"],
        &["config", "show"],
        &["config", "init"],
        &["config", "path"],
        &["serve"],
    ] {
        for flag in ["-h", "--help"] {
            let args = [command, &[flag]].concat();
            let plain = run(&args).stdout;
            let set = trayscan(&args).envs(VARIABLES).output();
            assert_eq!(set.code, Some(0));
            assert!(set.stdout == plain, "{args:?} shows a value: {set:?}");
        }
    }
}

#[test]
fn secrets_are_never_printed() {
    let server = Server::start(&["--client-secret", SECRET]);
    let wrong = Server::start(&[]);
    let home = Home::empty();
    fs::write(home.path().join("secret"), SECRET).unwrap();
    for server in [&server, &wrong] {
        for what in [
            &["export", "-f", "ndjson", "-vv"][..],
            &["export", "-f", "ndjson", "-vv", "--api", "v1"],
            &["check", "-vv"],
            &["check", "-f", "json", "-vv"],
            &["config", "show", "-vv"],
            &["config", "path", "-x"],
            &["export", "--parallel", "x"],
            &["export", "--client-secret"],
        ] {
            for format in ["text", "json"] {
                let mut command = home.command(what);
                command
                    .args(["--message-format", format])
                    .env("TRAYSCAN_BASE_URL", format!("http://{}", server.address))
                    .env("TRAYSCAN_CLIENT_ID", &server.client_id)
                    .env("TRAYSCAN_CLIENT_SECRET", SECRET);
                let ended = command.output();
                assert!(!format!("{ended:?}").contains("hunter2"), "{ended:?}");
                assert!(!format!("{ended:?}").contains("Bearer"), "{ended:?}");
            }
        }
    }
}

/// An address with a typing error is quoted, but not the secret in it.
#[test]
fn a_secret_in_the_address_of_an_output_is_not_shown() {
    let folder = TempDir::new().unwrap();
    for address in [
        "postgres:/u:hunter2-x@127.0.0.1:1/t",
        "postgres://127.0.0.1:1/t?password:hunter2-x",
        "postgres://u:a?hunter2-x@127.0.0.1:1/t",
        "'postgres://u:hunter2-x@127.0.0.1:1/t'",
        "postgresql+psycopg2://u:hunter2-x@127.0.0.1:1/t",
        "host=127.0.0.1 port=1 password=hunter2-x",
        "az://c/k.csv?sv=1&sig=hunter2-x",
    ] {
        for line in [
            &["export", "--sandbox", "-vv", "-o", address][..],
            &["export", "--sandbox", "--dry-run", "-o", address],
            &["export", "--sandbox", "-o", "a.csv", "--manifest", address],
            &["verify", address, "--message-format", "json"],
            &["summary", "--sandbox", "-o", address],
        ] {
            let ended = trayscan(line).current_dir(folder.path()).output();
            let shown = format!("{}{}", ended.stdout, ended.stderr);
            assert!(!shown.contains("hunter2-x"), "{line:?}: {shown}");
            assert!(!shown.is_empty(), "{line:?}");
        }
    }
}

#[test]
fn a_password_in_the_address_is_not_shown() {
    for address in [
        "https://user:hunter2@scan.example/api",
        "https://user:a@hunter2@scan.example/api",
        "https://user:a@b@hunter2@scan.example",
        "https://hunter2@scan.example",
        "user:hunter2@scan.example",
    ] {
        let home = Home::with(&format!("[profiles.default]\nbase_url = \"{address}\"\n"));
        let shown = home.run(&["config", "show"]);
        assert!(!format!("{shown:?}").contains("hunter2"), "{shown:?}");
        for command in ["export", "check"] {
            let ended = home.run(&[command, "--client-id=a", "--client-secret=b", "-vv"]);
            assert_eq!(ended.code, Some(2), "{ended:?}");
            assert!(!format!("{ended:?}").contains("hunter2"), "{ended:?}");
        }
    }
}

#[test]
fn a_variable_that_is_not_utf_8_is_refused_without_showing_it() {
    let home = Home::empty();
    let odd = std::ffi::OsString::from_vec(b"hunter2\xff".to_vec());
    let mut command = home.command(&["config", "show"]);
    refused(
        &command.env("TRAYSCAN_CLIENT_SECRET", odd).output(),
        &["error: "],
    );
}
