//! The packages that `.ci/dist` builds, installed into a folder and run, and the units of systemd.

use std::fs;
use std::path::{Path, PathBuf};

use crate::harness::{Folder, Output, Run, Server, Service as _};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// Returns the package whose name ends in `ending`.
fn package(ending: &str) -> PathBuf {
    let folder = Path::new(ROOT).join("target/packages");
    let entries = fs::read_dir(&folder).expect("run `.ci/dist` first");
    let mut paths = entries.map(|entry| entry.unwrap().path());
    let path = paths.find(|path| path.to_string_lossy().ends_with(ending));
    path.unwrap_or_else(|| panic!("no {ending} in {}", folder.display()))
}

/// Runs a program without any settings.
#[track_caller]
fn run(program: impl AsRef<std::ffi::OsStr>, args: &[&str]) -> Output {
    Run::new(program)
        .args(args)
        .env("HOME", "/nonexistent")
        .output()
}

/// Returns the newest version of glibc that the program needs, such as `[2, 31]`.
fn glibc(program: &Path) -> Vec<u32> {
    let symbols = run("objdump", &["-T", &program.to_string_lossy()]).expect(0);
    let versions = symbols.stdout.split("GLIBC_").skip(1).map(|rest| {
        let end = rest.find(|letter: char| letter != '.' && !letter.is_ascii_digit());
        let numbers = rest[..end.unwrap_or(rest.len())].split('.');
        numbers.map(|number| number.parse().unwrap()).collect()
    });
    versions.max().expect("a program that is linked to glibc")
}

/// Asserts that a program with all features works, on a system as old as Debian 11.
#[track_caller]
fn assert_works(program: &Path) {
    let version = run(program, &["--version"]).expect(0).stdout;
    assert!(
        version.starts_with(concat!("trayscan ", env!("CARGO_PKG_VERSION"))),
        "{version}"
    );
    assert!(
        version.contains("cloud") && version.contains("postgres"),
        "{version}"
    );
    let exported = run(program, &["export", "--sandbox"]).expect(0);
    assert_eq!(exported.stdout.lines().count(), 250);
    let newest = glibc(program);
    assert!(newest <= vec![2, 31], "{newest:?}");
}

#[test]
#[ignore = "needs the packages that `.ci/dist` builds"]
fn the_deb_contains_a_program_that_works_and_all_that_belongs_to_it() {
    let folder = Folder::new();
    let (deb, root) = (package(".deb"), folder.name("root"));
    run("dpkg-deb", &["-x", &deb.to_string_lossy(), &root]).expect(0);
    let root = Path::new(&root);
    assert_works(&root.join("usr/bin/trayscan"));
    for path in [
        "usr/share/man/man1/trayscan-export.1.gz",
        "usr/share/man/man5/trayscan-config.5.gz",
        "usr/share/man/man7/trayscan-formats.7.gz",
        "usr/share/bash-completion/completions/trayscan",
        "usr/share/zsh/vendor-completions/_trayscan",
        "usr/share/fish/vendor_completions.d/trayscan.fish",
        "usr/share/doc/trayscan/examples/config.toml",
        "usr/share/doc/trayscan/LICENSE-MIT",
        "usr/share/doc/trayscan/LICENSE-APACHE",
        "usr/lib/systemd/system/trayscan-sync@.service",
        "usr/lib/systemd/system/trayscan-sync@.timer",
        "usr/lib/sysusers.d/trayscan.conf",
    ] {
        assert!(root.join(path).is_file(), "{path}");
    }
    let info = run("dpkg-deb", &["-f", &deb.to_string_lossy()])
        .expect(0)
        .stdout;
    let depends = info.lines().find_map(|line| line.strip_prefix("Depends: "));
    assert_eq!(depends, Some("libc6 (>= 2.31)"));
}

#[test]
#[ignore = "needs the packages that `.ci/dist` builds"]
fn the_tarball_works_and_the_checksums_are_right() {
    let folder = Folder::new();
    let tarball = package(".tar.gz");
    let packages = tarball.parent().unwrap();
    let checked = Run::new("sha256sum")
        .args(["-c", "SHA256SUMS"])
        .current_dir(packages)
        .output();
    checked.expect(0);
    run(
        "tar",
        &["-xf", &tarball.to_string_lossy(), "-C", &folder.name("")],
    )
    .expect(0);
    let names = folder.names();
    assert_eq!(names.len(), 1, "{names:?}");
    assert_works(&folder.at(&names[0]).join("trayscan"));
    let sbom = fs::read_to_string(package(".cdx.json")).unwrap();
    let sbom: serde_json::Value = serde_json::from_str(&sbom).unwrap();
    let components = sbom["components"].as_array().unwrap();
    assert!(
        components
            .iter()
            .any(|component| component["name"] == "rusqlite")
    );
    // The format begins with this number.
    assert!(
        fs::read(package(".rpm"))
            .unwrap()
            .starts_with(&[0xed, 0xab, 0xee, 0xdb])
    );
}

/// Returns the values of `key` in the service unit, for the profile `nursery`.
fn unit(key: &str) -> Vec<String> {
    let text = fs::read_to_string(Path::new(ROOT).join("packaging/systemd/trayscan-sync@.service"))
        .unwrap();
    let lines = text
        .lines()
        .filter_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    lines.map(|value| value.replace("%i", "nursery")).collect()
}

#[test]
fn the_service_keeps_an_archive_and_fails_if_it_gets_old() {
    let folder = Folder::new();
    let server = Server::start(&[]);
    let [address, id, secret] = server.access();
    let config = folder.name("config.toml");
    // What the comment in the unit says.
    let login = [
        "login",
        "--config",
        &config,
        "--profile",
        "nursery",
        "--base-url",
        &address,
        "--client-id",
        &id,
        "--client-secret-file=-",
    ];
    crate::harness::trayscan(&login)
        .output_for(&secret)
        .expect(0);
    // What systemd does.
    let credentials = folder.at("credentials");
    fs::create_dir(&credentials).unwrap();
    for credential in unit("LoadCredential") {
        let (name, path) = credential.split_once(':').unwrap();
        let path = path.strip_prefix("/etc/trayscan/").unwrap();
        fs::copy(folder.at(path), credentials.join(name)).unwrap();
    }
    let environment = unit("Environment").remove(0);
    let (variable, max_age) = environment.split_once('=').unwrap();
    let successes = unit("SuccessExitStatus").remove(0);
    let successes: Vec<i32> = successes
        .split(' ')
        .map(|code| code.parse().unwrap())
        .collect();
    let start = || {
        for command in unit("ExecStart") {
            let command =
                command.replace("${CREDENTIALS_DIRECTORY}", &credentials.to_string_lossy());
            let command = command.replace(&format!("${{{variable}}}"), max_age);
            let command = command.replace("/var/lib/trayscan", &folder.name(""));
            let args: Vec<&str> = command
                .strip_prefix("/usr/bin/trayscan ")
                .unwrap()
                .split(' ')
                .collect();
            let ended = crate::harness::trayscan(&args)
                .env("TRAYSCAN_RETRIES", "0")
                .output();
            assert!(!ended.stderr.contains(&secret), "{ended:?}");
            let code = ended.code.unwrap();
            if code != 0 && !successes.contains(&code) {
                return code;
            }
        }
        0
    };
    assert_eq!(start(), 0);
    let archive = rusqlite::Connection::open(folder.at("nursery.db")).unwrap();
    let batches: u32 = archive
        .query_row("SELECT count(*) FROM batches", [], |row| row.get(0))
        .unwrap();
    assert_eq!(batches, 250);
    // One night without the service is no alarm, but two are.
    server.stop();
    assert_eq!(start(), 0);
    let sql =
        "UPDATE coverage SET covered_through = strftime('%Y-%m-%dT%H:%M:%SZ', 'now', '-50 hours')";
    archive.execute(sql, []).unwrap();
    assert_eq!(start(), 10);
}

#[test]
fn systemd_accepts_the_units() {
    let folder = Folder::new();
    let units = Path::new(ROOT).join("packaging/systemd");
    let mut names = Vec::new();
    for unit in ["trayscan-sync@.service", "trayscan-sync@.timer"] {
        let text = fs::read_to_string(units.join(unit)).unwrap();
        // The program is not installed here.
        let text = text.replace("/usr/bin/trayscan", env!("CARGO_BIN_EXE_trayscan"));
        let name = folder.at(&unit.replace('@', "@nursery"));
        fs::write(&name, text).unwrap();
        names.push(name);
    }
    let mut verify = Run::new("systemd-analyze");
    verify.args(["verify", "--man=no"]).args(&names);
    let Ok(output) = verify.try_raw() else {
        eprintln!("skipped: this machine has no systemd-analyze");
        return;
    };
    let ended = Output::of(output).expect(0);
    assert!(!ended.stderr.contains("trayscan"), "{ended:?}");
}
