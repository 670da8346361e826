//! Settings: precedence, secrets that are never shown, the config file, and `check`.

// Where the secret comes from.
mod secret_sources;

// Mistakes in the config file and in values; what is never printed.
mod mistakes;

// `check`.
mod check;

// `login` and `config set`.
mod config_set;
mod login;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::harness::{Output, Run, Server, run, trayscan};

/// A secret that must never be shown, with characters that a shell would interpret.
const SECRET: &str = "hunter2;$HOME canary";

/// Every variable that is a setting, each with a distinct value.
const VARIABLES: [(&str, &str); 15] = [
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
    ("TRAYSCAN_TIME_ZONE", "Europe/Amsterdam"),
    ("TRAYSCAN_PROFILE", "value-f"),
    ("TRAYSCAN_CONFIG", "value-g"),
    ("TRAYSCAN_MESSAGE_FORMAT", "json"),
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

    pub(crate) fn command(&self, args: &[&str]) -> Run {
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
    let rows: [(&str, &str, &str, &str, [&str; 4]); 10] = [
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
        (
            "time_zone",
            "Asia/Tokyo",
            "America/New_York",
            "\"Europe/Amsterdam\"",
            ["Asia/Tokyo", "America/New_York", "Europe/Amsterdam", "UTC"],
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
fn a_home_that_is_no_folder_has_no_config_file() {
    let exported = |args: &[&str]| {
        let mut command = trayscan(&["export", "--sandbox", "--limit", "1"]);
        command.args(args).env("HOME", "/dev/null").output()
    };
    exported(&[]).expect(0);
    let config = "/dev/null/.config/trayscan/config.toml";
    let named = exported(&["--config", config]).expect(2);
    assert!(
        named.stderr.contains("cannot read the config file"),
        "{named:?}"
    );
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
