//! Files that trayscan reads itself and must not overwrite with its output.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use tempfile::TempDir;

use crate::files::names;
use crate::harness::{Run, trayscan};

const CONFIG: &str = "[profiles.default]\n\
    base_url = \"http://127.0.0.1:1\"\n\
    client_id = \"me\"\n\
    client_secret_file = \"~/secret\"\n\
    [profiles.other]\n\
    client_secret_file = \"~/other\"\n";

/// The secret files of the profiles.
const SECRETS: [&str; 2] = ["secret", "other"];

/// A home directory with a config file and a secret.
struct Home {
    folder: TempDir,
}

impl Home {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let home = Self { folder };
        fs::create_dir_all(home.config().parent().unwrap()).unwrap();
        fs::write(home.config(), CONFIG).unwrap();
        for name in SECRETS {
            fs::write(home.at(name), "hunter2\n").unwrap();
        }
        home
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn config(&self) -> PathBuf {
        self.at(".config/trayscan/config.toml")
    }

    fn command(&self, args: &[&str]) -> Run {
        let mut command = trayscan(args);
        command
            .env("HOME", self.folder.path())
            .env("XDG_CONFIG_HOME", self.at(".config"))
            .current_dir(self.folder.path());
        command
    }

    /// Asserts that a run is refused before any request, and that no file has changed.
    fn assert_refused(&self, args: &[&str]) {
        let before = names(self.folder.path());
        let ended = self.command(args).output();
        assert_eq!(ended.code, Some(2), "{args:?}: {ended:?}");
        assert!(
            ended.stderr.contains("would overwrite the "),
            "{args:?}: {ended:?}"
        );
        assert_eq!(fs::read_to_string(self.config()).unwrap(), CONFIG);
        for name in SECRETS {
            assert_eq!(fs::read_to_string(self.at(name)).unwrap(), "hunter2\n");
        }
        assert_eq!(names(self.folder.path()), before);
    }
}

#[test]
fn no_output_replaces_the_config_file() {
    let home = Home::new();
    let config = home.config();
    let config = config.to_str().unwrap();
    symlink(config, home.at("link.csv")).unwrap();
    fs::hard_link(config, home.at("hard.csv")).unwrap();
    for name in [
        config,
        "link.csv",
        "hard.csv",
        ".config/../.config/trayscan/config.toml",
    ] {
        home.assert_refused(&["export", "-f", "csv", "-o", name]);
        home.assert_refused(&["export", "-o", "a.csv", "--manifest", name]);
        home.assert_refused(&["summary", "-f", "csv", "-o", name]);
        home.assert_refused(&[
            "report",
            "-o",
            if name.ends_with("csv") { config } else { name },
        ]);
        home.assert_refused(&["sync", name]);
    }
    home.assert_refused(&["export", "--sandbox", "-f", "csv", "-o", config]);
}

#[test]
fn no_output_replaces_the_ca_certificates() {
    let home = Home::new();
    fs::write(home.at("ca.csv"), "certificates").unwrap();
    home.assert_refused(&["export", "-o", "ca.csv", "--ca-cert", "ca.csv"]);
    assert_eq!(
        fs::read_to_string(home.at("ca.csv")).unwrap(),
        "certificates"
    );
}

#[test]
fn only_the_config_file_in_use_is_protected() {
    let home = Home::new();
    fs::write(home.at("other.toml"), CONFIG).unwrap();
    let args = ["export", "-f", "csv", "-o", "other.toml"];
    home.assert_refused(&[&args[..], &["--config", "other.toml"]].concat());
    let mut command = home.command(&args);
    command.env("TRAYSCAN_CONFIG", home.at("other.toml"));
    command.output().expect(2);
    // A config file that is not in use may be replaced. The default one is protected even if it does not exist.
    home.command(&[&args[..], &["--sandbox"]].concat())
        .output()
        .expect(0);
    fs::remove_file(home.config()).unwrap();
    let config = home.config();
    let args = [
        "export",
        "--sandbox",
        "-f",
        "csv",
        "-o",
        config.to_str().unwrap(),
    ];
    home.command(&args).output().expect(2);
    assert!(!config.exists());
}

#[test]
fn no_output_replaces_the_client_secret_file() {
    let home = Home::new();
    for secret in SECRETS {
        for command in [
            &["export", "-f", "csv", "-o", secret][..],
            &["export", "-o", "a.csv", "--manifest", secret],
            &["summary", "-f", "csv", "-o", secret],
            &["report", "-o", secret],
            &["sync", secret],
        ] {
            home.assert_refused(command);
            if command[0] != "sync" {
                home.assert_refused(&[command, &["--sandbox"]].concat());
            }
        }
    }
    fs::write(home.at("given"), "hunter2").unwrap();
    home.assert_refused(&[
        "export",
        "-f",
        "csv",
        "-o",
        "given",
        "--client-secret-file",
        "given",
    ]);
    let mut command = home.command(&["export", "--sandbox", "-f", "csv", "-o", "given"]);
    command.env("TRAYSCAN_CLIENT_SECRET_FILE", "given");
    command.output().expect(2);
    assert_eq!(fs::read_to_string(home.at("given")).unwrap(), "hunter2");
}
