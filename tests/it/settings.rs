//! Settings: precedence, secrets that are never shown, the config file, and `check`.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

use crate::fake::{Answer, Batch, FakeService, page, token};
use crate::harness::{LIMIT, Output, Run, Server, run, trayscan};

/// A secret that must never be shown, with characters that a shell would interpret.
const SECRET: &str = "hunter2;$HOME canary";

/// Every variable that is a setting, each with a distinct value.
const VARIABLES: [(&str, &str); 14] = [
    ("TRAYSCAN_BASE_URL", "https://value-a.example"),
    ("TRAYSCAN_CLIENT_ID", "value-b"),
    ("TRAYSCAN_CLIENT_SECRET", "value-c"),
    ("TRAYSCAN_CLIENT_SECRET_FILE", "value-d"),
    ("TRAYSCAN_API", "v1"),
    ("TRAYSCAN_PARALLEL", "77"),
    ("TRAYSCAN_RETRIES", "78"),
    ("TRAYSCAN_RETRY_WAIT", "79s"),
    ("TRAYSCAN_TIMEOUT", "80s"),
    ("TRAYSCAN_CA_CERT", "value-e"),
    ("TRAYSCAN_ALLOW_HTTP", "true"),
    ("TRAYSCAN_PROFILE", "value-f"),
    ("TRAYSCAN_CONFIG", "value-g"),
    ("TRAYSCAN_ERROR_FORMAT", "json"),
];

/// A temporary home directory, with or without a config file.
pub(crate) struct Home(TempDir);

impl Home {
    pub(crate) fn empty() -> Self {
        Self(TempDir::new().unwrap())
    }

    /// Writes `text` to the default config file, readable only by the owner.
    pub(crate) fn with(text: &str) -> Self {
        let home = Self::empty();
        let path = home.config();
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        set_mode(&path, 0o600);
        home
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    fn config(&self) -> PathBuf {
        self.path().join(".config/trayscan/config.toml")
    }

    fn command(&self, args: &[&str]) -> Run {
        let mut command = trayscan(args);
        command.env("HOME", self.path()).current_dir(self.path());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.command(args).output()
    }
}

pub(crate) fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Parses the output of `config show`: value and origin by key.
fn shown(ended: &Output) -> BTreeMap<String, (String, String)> {
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let row = |line: &str| {
        let mut cells = line
            .split("  ")
            .map(str::trim)
            .filter(|cell| !cell.is_empty());
        let mut next = || cells.next().unwrap_or_default().to_owned();
        (next(), (next(), next()))
    };
    ended.stdout.lines().map(row).collect()
}

/// Asserts that the settings were refused with a message that contains all of `words`.
pub(crate) fn refused(ended: &Output, words: &[&str]) {
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(2), ""),
        "{ended:?}"
    );
    for word in words {
        assert!(ended.stderr.contains(word), "no `{word}` in {ended:?}");
    }
    assert!(!ended.stderr.contains("hunter2"), "{ended:?}");
}

/// Flags for the service and the client id, without a secret.
pub(crate) fn access(server: &Server) -> [String; 4] {
    [
        "--base-url".to_owned(),
        format!("http://{}", server.address),
        "--client-id".to_owned(),
        server.client_id.clone(),
    ]
}

/// A profile with the service, the client id and one more line.
pub(crate) fn profile(server: &Server, line: &str) -> String {
    format!(
        "[profiles.default]\nbase_url = \"http://{}\"\nclient_id = \"{}\"\n{line}\n",
        server.address, server.client_id
    )
}

/// Returns a command that fetches a batch, to check the credentials.
pub(crate) fn fetch(home: &Home) -> Run {
    home.command(&["export", "--limit", "1", "-f", "ndjson", "--retries", "0"])
}

pub(crate) fn fetched(ended: &Output) {
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_eq!(ended.stdout.lines().count(), 1, "{ended:?}");
    assert!(!ended.stderr.contains("hunter2"), "{ended:?}");
}

#[test]
fn flags_override_variables_override_the_profile_override_defaults() {
    // Key, flag, variable, profile line, and the expected value of each of the four.
    let rows: [(&str, &str, &str, &str, [&str; 4]); 9] = [
        (
            "base_url",
            "https://flag.example",
            "https://variable.example",
            "\"https://file.example\"",
            [
                "https://flag.example",
                "https://variable.example",
                "https://file.example",
                "(not set)",
            ],
        ),
        (
            "client_id",
            "flag",
            "variable",
            "\"file\"",
            ["flag", "variable", "file", "(not set)"],
        ),
        ("api", "v2", "v1", "\"v2\"", ["v2", "v1", "v2", "auto"]),
        ("parallel", "7", "8", "9", ["7", "8", "9", "4"]),
        ("retries", "0", "8", "9", ["0", "8", "9", "5"]),
        (
            "retry_wait",
            "0s",
            "1m 30s",
            "\"500ms\"",
            ["0s", "1m 30s", "500ms", "4s"],
        ),
        ("timeout", "7s", "8s", "\"9s\"", ["7s", "8s", "9s", "1m"]),
        (
            "ca_cert",
            "flag.pem",
            "/variable.pem",
            "\"file.pem\"",
            ["flag.pem", "/variable.pem", "file.pem", "(the system's)"],
        ),
        (
            "allow_http",
            "true",
            "false",
            "true",
            ["true", "false", "true", "false"],
        ),
    ];
    let empty = Home::empty();
    for (key, flag, variable, line, expected) in rows {
        let name = format!("--{}", key.replace('_', "-"));
        let variable_name = format!("TRAYSCAN_{}", key.to_uppercase());
        let with_file = Home::with(&format!("[profiles.default]\n{key} = {line}\n"));
        let flag = format!("{name}={flag}");
        let show = |home: &Home, with_flag: bool, with_variable: bool| {
            let mut command = home.command(&["config", "show"]);
            if with_flag {
                command.arg(&flag);
            }
            if with_variable {
                command.env(&variable_name, variable);
            }
            shown(&command.output())[key].clone()
        };
        let default = if expected[3] == "(not set)" {
            ""
        } else {
            "default"
        };
        let file = "config file, profile default";
        for (found, value, origin) in [
            (show(&with_file, true, true), expected[0], name.as_str()),
            (show(&with_file, false, true), expected[1], &variable_name),
            (show(&with_file, false, false), expected[2], file),
            (show(&empty, false, false), expected[3], default),
            (show(&empty, true, false), expected[0], &name),
            (show(&empty, false, true), expected[1], &variable_name),
        ] {
            assert_eq!(found, (value.to_owned(), origin.to_owned()), "{key}");
        }
    }
}

#[test]
fn the_secret_with_the_highest_precedence_wins_and_is_masked() {
    let home = Home::with("[profiles.default]\nclient_secret = \"hunter2-file\"\n");
    let with_command = Home::with("[profiles.default]\nclient_secret_command = \"touch ran\"\n");
    let flag = ["--client-secret", "hunter2-flag"];
    let flag_file = ["--client-secret-file", "flag-path"];
    let variable = ("TRAYSCAN_CLIENT_SECRET", "hunter2-variable");
    let variable_file = ("TRAYSCAN_CLIENT_SECRET_FILE", "variable-path");
    let show = |home: &Home, flags: &[&str], variables: &[(&str, &str)]| {
        let mut command = home.command(&["config", "show"]);
        let ended = command.args(flags).envs(variables.iter().copied()).output();
        assert!(!format!("{ended:?}").contains("hunter2"), "{ended:?}");
        shown(&ended)["client_secret"].clone()
    };
    let file = "config file, profile default";
    for (found, value, origin) in [
        (show(&home, &flag, &[variable]), "********", flag[0]),
        (show(&home, &flag, &[variable_file]), "********", flag[0]),
        (
            show(&home, &flag_file, &[variable]),
            "******** (in flag-path)",
            flag_file[0],
        ),
        (show(&home, &[], &[variable]), "********", variable.0),
        (
            show(&home, &[], &[variable_file]),
            "******** (in variable-path)",
            variable_file.0,
        ),
        (show(&home, &[], &[]), "********", file),
        (
            show(&with_command, &[], &[]),
            "******** (from client_secret_command)",
            file,
        ),
        (show(&Home::empty(), &[], &[]), "(not set)", ""),
    ] {
        assert_eq!(found, (value.to_owned(), origin.to_owned()));
    }
    assert!(
        !with_command.path().join("ran").exists(),
        "the command is not run"
    );
}

#[test]
fn the_profile_is_chosen_by_flag_variable_or_the_file() {
    let profiles = "[profiles.default]\nretries = 1\n[profiles.a]\nretries = 2\n\
                    [profiles.b]\nretries = 3\n";
    let plain = Home::with(profiles);
    let with_default = Home::with(&format!("default_profile = \"a\"\n{profiles}"));
    let show = |home: &Home, flags: &[&str], variable: &str| {
        let mut command = home.command(&["config", "show"]);
        command.args(flags).env("TRAYSCAN_PROFILE", variable);
        shown(&command.output())["retries"].1.clone()
    };
    for (found, name) in [
        (show(&plain, &[], ""), "default"),
        (show(&with_default, &[], ""), "a"),
        (show(&with_default, &[], "b"), "b"),
        (
            show(&with_default, &["--profile", "default"], "b"),
            "default",
        ),
    ] {
        assert_eq!(found, format!("config file, profile {name}"));
    }
}

#[test]
fn the_config_file_is_found_by_flag_variable_xdg_or_home() {
    let home = Home::with("[profiles.default]\nretries = 1\n");
    let at = |name: &str, retries: u32| {
        let path = home.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let text = format!("[profiles.default]\nretries = {retries}\n");
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let xdg = at("xdg/trayscan/config.toml", 2);
    let by_variable = at("variable.toml", 3);
    let by_flag = at("flag.toml", 4);
    let xdg_home = xdg.strip_suffix("/trayscan/config.toml").unwrap();
    let standard = home.config().to_str().unwrap().to_owned();
    for (flag, variable, xdg_variable, path, retries) in [
        (None, "", "", &standard, "1"),
        (None, "", "not/absolute", &standard, "1"),
        (None, "", xdg_home, &xdg, "2"),
        (None, &by_variable, xdg_home, &by_variable, "3"),
        (Some(&by_flag), &by_variable, xdg_home, &by_flag, "4"),
    ] {
        let run = |what: &str| {
            let mut command = home.command(&["config", what]);
            command
                .env("TRAYSCAN_CONFIG", variable)
                .env("XDG_CONFIG_HOME", xdg_variable);
            if let Some(flag) = flag {
                command.args(["--config", flag]);
            }
            command.output()
        };
        assert_eq!(run("path").stdout, format!("{path}\n"));
        assert_eq!(shown(&run("show"))["retries"].0, retries);
    }
}

#[test]
fn flags_are_enough_without_a_home_directory() {
    let server = Server::start(&["--batches", "3", "--client-secret", SECRET]);
    let [base, url, id, name] = access(&server);
    let secret = ["--client-secret", SECRET];
    let flags = [&[&*base, &url, &id, &name][..], &secret].concat();
    let export = ["export", "-f", "ndjson"];
    // The environment is empty.
    let ended = run(&[&export[..], &flags].concat()).expect(0);
    assert_eq!(ended.stdout.lines().count(), 3);
    run(&[&["check"][..], &flags].concat()).expect(0);
    run(&["config", "show"]).expect(0);
}

#[test]
fn targets_are_shown_with_the_settings() {
    let home = Home::with(
        "[profiles.default]\nretries = 9\n[targets.\"Sweet pepper\"]\nusable_rate_min = 92.50\n",
    );
    let rows = shown(&home.run(&["config", "show"]));
    let target = &rows["targets.\"Sweet pepper\".usable_rate_min"];
    assert_eq!(*target, ("92.5".to_owned(), "config file".to_owned()));
}

#[test]
fn empty_variables_count_as_unset() {
    let home = Home::with("[profiles.default]\nclient_id = \"file\"\nretries = 9\n");
    let expected = home.run(&["config", "show"]);
    let mut command = home.command(&["config", "show"]);
    command.envs(VARIABLES.map(|(name, _)| (name, "")));
    command.env("XDG_CONFIG_HOME", "").env("NO_COLOR", "");
    let found = command.output();
    assert_eq!(found.stdout, expected.stdout);
    assert_eq!((found.code, found.stderr.as_str()), (Some(0), ""));
}

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
            refused(&ended, &["no client secret in `-`"]);
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
                "no profile `c` in the config file",
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
            let ended = home.run(&["config", "show", "--error-format", format]);
            refused(&ended, &["config file"]);
        }
    }
    let home = Home::with("");
    fs::write(home.config(), b"# hunter2 \xff\n").unwrap();
    refused(&home.run(&["config", "show"]), &["cannot read"]);
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
        ("client_secret_command", "[]"),
    ] {
        let home = Home::with(&profile(&server, &format!("{key} = {value}\n{line}")));
        let ended = home.command(&["export", "-f", "ndjson"]).output();
        refused(&ended, &[key]);
    }
    let log = server.stop().stderr;
    assert!(log.contains("stopped after 0 requests"), "{log}");
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
                    .args(["--error-format", format])
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

/// Runs `check` against `server` with the right credentials, followed by `flags`.
fn check(server: &Server, flags: &[&str]) -> Output {
    let home = Home::empty();
    let mut command = home.command(&["check"]);
    command.service(server);
    command.args(flags).output()
}

/// Checks the structure of a report and returns the name and result of each step.
fn steps(ended: &Output) -> Vec<(String, bool)> {
    let report: Value = ended.json();
    assert_eq!(report["ok"], ended.code == Some(0), "{ended:?}");
    let step = |step: &Value| {
        let ok = step["ok"].as_bool().unwrap();
        assert!(!step["found"].as_str().unwrap().is_empty(), "{step}");
        assert!(ok || step["hint"].is_string(), "{step}");
        (step["step"].as_str().unwrap().to_owned(), ok)
    };
    report["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(step)
        .collect()
}

const STEPS: [&str; 8] = [
    "settings",
    "connection",
    "TLS",
    "auth v2",
    "batches v2",
    "auth v1",
    "batches v1",
    "clock",
];

#[test]
fn check_passes_for_a_healthy_service() {
    let server = Server::start(&[]);
    let text = check(&server, &[]);
    assert_eq!((text.code, text.stderr.as_str()), (Some(0), ""));
    let lines: Vec<&str> = text.stdout.lines().collect();
    assert_eq!(lines.len(), STEPS.len(), "{text:?}");
    for (line, step) in lines.iter().zip(STEPS) {
        assert!(line.starts_with(&format!("ok      {step} ")), "{line}");
    }
    let settings = format!(
        "http://{} (from TRAYSCAN_BASE_URL) as `sandbox`",
        server.address
    );
    assert!(lines[0].contains(&settings), "{}", lines[0]);
    assert!(lines[0].contains("TRAYSCAN_CLIENT_ID"));
    assert!(lines[4].contains("250 batches"), "{text:?}");
    assert!(
        lines[7].ends_with("the same as the clock of the service"),
        "{text:?}"
    );
    let json = check(&server, &["--format", "json"]);
    assert_eq!((json.code, json.stdout.lines().count()), (Some(0), 1));
    assert_eq!(steps(&json), STEPS.map(|step| (step.to_owned(), true)));
    for api in ["v1", "v2"] {
        assert_eq!(check(&server, &["--api", api]).code, Some(0));
    }
    assert_eq!(run(&["check", "--sandbox"]).code, Some(0));
}

#[test]
fn check_reports_refused_credentials_with_code_4() {
    let server = Server::start(&[]);
    for flags in [
        &["--client-secret", "hunter2"][..],
        &["--client-id", "stranger"],
        &["--client-secret", "hunter2", "--api", "v1"],
        &["--client-secret", "hunter2", "--api", "v2"],
    ] {
        let text = check(&server, flags).expect(4);
        assert!(text.stdout.contains("FAILED  auth v2"), "{text:?}");
        assert!(text.stdout.contains("hint: "), "{text:?}");
        assert!(text.stderr.starts_with("error: the check failed\n"));
        assert!(!format!("{text:?}").contains("hunter2"), "{text:?}");
        let json = check(&server, &[flags, &["-f", "json"]].concat());
        let failed: Vec<String> = steps(&json)
            .into_iter()
            .filter_map(|(step, ok)| (!ok).then_some(step))
            .collect();
        assert_eq!(failed, ["auth v2", "auth v1"]);
    }
    let error = check(&server, &["--client-id=x", "--error-format=json"]).error();
    assert_eq!((&error["code"], &error["status"]), (&4.into(), &401.into()));
}

#[test]
fn check_reports_a_closed_port_with_code_5() {
    let server = Server::start(&[]);
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", free.local_addr().unwrap());
    drop(free);
    let text = check(&server, &["--base-url", &url]).expect(5);
    assert!(text.stdout.contains("FAILED  connection"), "{text:?}");
    assert!(text.stdout.contains("hint: check the base URL"), "{text:?}");
    assert_eq!(text.stdout.lines().count(), 3, "no steps after the failure");
    let json = check(&server, &["--base-url", &url, "-f", "json"]);
    let expected = [("settings".to_owned(), true), ("connection".into(), false)];
    assert_eq!(steps(&json), expected);
}

#[test]
fn check_accepts_a_missing_version_2_unless_it_was_requested() {
    let server = Server::start(&["--fault", "v2-missing"]);
    let verdicts = |api: &str| {
        let ended = check(&server, &["--api", api, "-f", "json"]);
        let failed: Vec<String> = steps(&ended)
            .into_iter()
            .filter_map(|(step, ok)| (!ok).then_some(step))
            .collect();
        (ended.code, failed)
    };
    let missing = vec!["auth v2".to_owned()];
    assert_eq!(verdicts("auto"), (Some(0), vec![]));
    assert_eq!(verdicts("v1"), (Some(0), missing.clone()));
    assert_eq!(verdicts("v2"), (Some(6), missing));
    let text = check(&server, &[]);
    assert!(text.stdout.contains("v1 is used"), "{text:?}");
    assert!(text.stdout.contains("ok      batches v1"), "{text:?}");
}

#[test]
fn check_accepts_a_missing_version_1_if_version_2_works() {
    let service = FakeService::start(|asked| match asked.path() {
        "/v2/auth" => token(),
        "/v2/batches" => Answer::ok(page::<Batch>(&[], None)),
        _ => Answer::error(404, "Not Found"),
    });
    let ask = |flags: &[&str]| {
        let mut command = trayscan(&["check", "--base-url", &service.base_url()]);
        command.args(["--client-id", "a", "--client-secret", "b"]);
        command.args(flags).output()
    };
    let text = ask(&[]);
    assert_eq!(text.code, Some(0), "{text:?}");
    assert!(!text.stdout.contains("FAILED"), "{text:?}");
    assert!(text.stdout.contains("and not needed"), "{text:?}");
    let text = ask(&["--api", "v1"]);
    assert_eq!(text.code, Some(6), "{text:?}");
    assert!(text.stdout.contains("FAILED  auth v1"), "{text:?}");
}

#[test]
fn check_reports_a_failing_service_with_code_5() {
    let server = Server::start(&["--fault", "503:1"]);
    for api in ["auto", "v1", "v2"] {
        check(&server, &["--api", api, "--retries", "0"]).expect(5);
    }
}

/// Starts a service with the given `Date` header.
fn service_with_date(date: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut reader = BufReader::new(stream.unwrap());
            let (mut first, mut length) = (String::new(), 0);
            reader.read_line(&mut first).unwrap();
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                let line = line.trim_end().to_lowercase();
                if let Some(value) = line.strip_prefix("content-length: ") {
                    length = value.parse().unwrap();
                }
                if line.is_empty() {
                    break;
                }
            }
            reader.read_exact(&mut vec![0; length]).unwrap();
            let body = match first.split(' ').nth(1).unwrap().split('?').next().unwrap() {
                "/v2/batches" => "{\"data\": [], \"next_token\": null}",
                "/v1/batches" => "[]",
                _ => "{\"access_token\": \"hunter2\"}",
            };
            let answer = format!(
                "HTTP/1.1 200 OK\r\nDate: {date}\r\nContent-Type: application/json\r\n\
                 Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
                body.len()
            );
            reader.get_mut().write_all(answer.as_bytes()).unwrap();
        }
    });
    url
}

#[test]
fn check_reports_clock_skew() {
    let flags = ["--client-id", "a", "--client-secret", "b", "-vv"];
    for (date, which) in [
        (
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "s ahead of the clock of the service",
        ),
        (
            "Thu, 01 Jan 2099 00:00:00 GMT",
            "s behind the clock of the service",
        ),
    ] {
        let url = service_with_date(date);
        let args = [&["check", "--base-url", &url][..], &flags].concat();
        let ended = Home::empty().run(&args);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let last = ended.stdout.lines().last().unwrap();
        assert!(last.contains("clock") && last.ends_with(which), "{last}");
        assert!(ended.stderr.contains("warning: the clock"), "{ended:?}");
        assert!(!format!("{ended:?}").contains("hunter2"), "{ended:?}");
    }
    let url = service_with_date("some day");
    let args = [&["check", "--base-url", &url][..], &flags].concat();
    let last = Home::empty().run(&args).stdout;
    assert!(last.ends_with("unknown: no response had a date\n"));
}
