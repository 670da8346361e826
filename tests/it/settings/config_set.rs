//! `config set`.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::{Home, refused, set_mode, shown};

#[test]
fn a_key_is_changed_and_the_rest_is_kept() {
    let home = Home::with("# Mine.\n[profiles.a] # A\nretries = 1 # few\n# End.\n");
    let real = home.path().join("real.toml");
    fs::rename(home.config(), &real).unwrap();
    symlink(&real, home.config()).unwrap();
    set_mode(&real, 0o640);
    for args in [
        &["retries", "2", "--profile", "a"][..],
        &["allow_http", "true", "--profile=a"],
        &["default_profile", "a"],
        &["time_zone", "Europe/Amsterdam"],
        &["timeout", "9s"],
    ] {
        home.run(&[&["config", "set"], args].concat()).expect(0);
    }
    let expected = "default_profile = \"a\"\n\n# Mine.\n[profiles.a] # A\nretries = 2 # few\n\
                    allow_http = true\ntime_zone = \"Europe/Amsterdam\"\ntimeout = \"9s\"\n# End.\n";
    assert_eq!(fs::read_to_string(&real).unwrap(), expected);
    assert!(home.config().is_symlink());
    let mode = fs::metadata(&real).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    let show = shown(&home.run(&["config", "show"]));
    assert_eq!(
        show["retries"],
        ("2".into(), "config file, profile a".into())
    );
    let again = home.run(&["config", "set", "retries", "2"]).expect(0);
    assert_eq!(again.stderr, "`retries` already has this value\n");
}

#[test]
fn file_and_profile_are_created() {
    let home = Home::empty();
    home.run(&["config", "set", "base_url", "https://a.example"])
        .expect(0);
    let text = || fs::read_to_string(home.config()).unwrap();
    assert_eq!(
        text(),
        "[profiles.default]\nbase_url = \"https://a.example\"\n"
    );
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&home.config()), 0o600);
    assert_eq!(mode(home.config().parent().unwrap()), 0o700);
    let mut command = home.command(&["config", "set", "retries", "0"]);
    command.env("TRAYSCAN_PROFILE", "b").output().expect(0);
    assert!(
        text().ends_with("\n\n[profiles.b]\nretries = 0\n"),
        "{}",
        text()
    );
}

/// Comments after the last key belong to the table above them.
#[test]
fn a_new_profile_is_added_after_the_comments_of_the_others() {
    let before = "[profiles.a]\nretries = 1\n# client_id = \"later\"\n";
    let home = Home::with(before);
    let ended = home.run(&["config", "set", "retries", "3", "--profile", "b"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let after = fs::read_to_string(home.config()).unwrap();
    assert_eq!(after, format!("{before}\n[profiles.b]\nretries = 3\n"));
}

#[test]
fn a_path_is_the_same_from_every_folder() {
    let home = Home::empty();
    let folder = home.path().canonicalize().unwrap();
    for (key, value) in [("client_secret_file", "./s"), ("ca_cert", "x/../x")] {
        home.run(&["config", "set", key, value]).expect(0);
    }
    let text = fs::read_to_string(home.config()).unwrap();
    let (secret, ca_cert) = (folder.join("s"), folder.join("x/../x"));
    let expected = format!(
        "[profiles.default]\nclient_secret_file = \"{}\"\nca_cert = \"{}\"\n",
        secret.display(),
        ca_cert.display()
    );
    assert_eq!(text, expected);
}

#[test]
fn plain_http_to_another_machine_needs_a_second_key() {
    let home = Home::empty();
    let set = |key: &str, value: &str| home.run(&["config", "set", key, value]).expect(0);
    let ended = set("base_url", "http://a.example");
    let warning = "warning: `base_url` is plain http to another machine";
    assert!(ended.stderr.starts_with(warning), "{ended:?}");
    set("allow_http", "true");
    let ended = set("base_url", "http://b.example");
    assert!(!ended.stderr.contains("warning"), "{ended:?}");
}

#[test]
fn changes_at_the_same_time_are_all_kept() {
    let home = Home::empty();
    let changes = [
        ("client_id", "x"),
        ("api", "v2"),
        ("parallel", "3"),
        ("retries", "2"),
        ("retry_wait", "1s"),
        ("timeout", "9s"),
        ("allow_http", "true"),
        ("time_zone", "UTC"),
    ];
    let start = |(key, value)| home.command(&["config", "set", key, value]).start();
    for running in changes.map(start) {
        running.output().expect(0);
    }
    let text = fs::read_to_string(home.config()).unwrap();
    for (key, _) in changes {
        assert!(text.contains(&format!("\n{key} = ")), "{key}: {text}");
    }
}

#[test]
fn a_wrong_key_or_value_changes_nothing() {
    let before = "[profiles.default]\nclient_secret_command = \"x\"\n";
    let home = Home::with(before);
    for (key, value, words) in [
        (
            "retries",
            "many",
            &[
                "`config set retries`: the value `many` is invalid",
                "a whole number",
            ][..],
        ),
        (
            "retries",
            "-1",
            &["the value `-1` is invalid", "a whole number"],
        ),
        (
            "parallel",
            "0",
            &[
                "`config set parallel`: the value `0` is invalid",
                "at least 1",
            ],
        ),
        ("timeout", "0s", &["longer than zero"]),
        ("allow_http", "1", &["true or false"]),
        ("api", "v3", &["auto, v1 or v2"]),
        (
            "base_url",
            "https://u:hunter2@a",
            &["a user name or a password"],
        ),
        (
            "base_url",
            "https://a.example/api/v2",
            &["contains the API version", "use https://a.example/api\n"],
        ),
        ("client_secret", "hunter2", &["`trayscan login`"]),
        (
            "client_secret_file",
            "s",
            &["the client secret is set twice"],
        ),
        (
            "baseurl",
            "x",
            &[
                "unknown key `baseurl`",
                "did you mean `base_url`?",
                "retry_wait",
            ],
        ),
        (
            "targets",
            "x",
            &["unknown key `targets`", "available keys: base_url"],
        ),
        (
            "default_profile",
            "b",
            &["no profile `b`", "available profiles: default"],
        ),
    ] {
        refused(&home.run(&["config", "set", key, value]), words);
        assert_eq!(fs::read_to_string(home.config()).unwrap(), before);
    }
    let broken = Home::with("\n[profiles\n");
    refused(&broken.run(&["config", "set", "retries", "1"]), &["line 2"]);
    set_mode(&home.config(), 0o400);
    home.run(&["config", "set", "retries", "1"]).expect(8);
}
