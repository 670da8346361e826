//! `--open`: shows the page where there is a desktop.

use std::fs;

use tempfile::TempDir;

use super::{MADE, nursery, report, sound};
use crate::harness::{Output, Service as _, trayscan};

/// Runs `report --open` with a launcher that notes its arguments and its environment, and ends with `code`.
#[cfg(unix)]
fn open(code: u8, display: &str) -> (Output, Option<String>) {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = TempDir::new().unwrap();
    let noted = folder.path().join("noted");
    for launcher in ["xdg-open", "gio", "gnome-open", "kde-open"] {
        let path = folder.path().join(launcher);
        let script = format!(
            "#!/bin/sh\necho \"$@\" >> '{}'\nexport >> '{0}'\nexit {code}\n",
            noted.display()
        );
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let page = folder.path().join("-page.html");
    let nursery = nursery([sound("a", MADE)]);
    let mut command = trayscan(&["report", "--open"]);
    command
        .service(&nursery)
        .env("DISPLAY", display)
        .env("PATH", folder.path())
        .arg(format!("-o{}", page.display()));
    let ended = command.output();
    assert!(page.is_file(), "{}", ended.stderr);
    let noted = fs::read_to_string(noted).ok();
    if let Some(noted) = &noted {
        let [_, _, secret] = nursery.access();
        assert!(!noted.contains(&secret), "the launcher gets no secret");
        assert!(noted.contains("-page.html"), "{noted}");
    }
    (ended, noted)
}

#[cfg(target_os = "linux")]
#[test]
fn the_page_is_opened_where_there_is_a_desktop() {
    let (ended, noted) = open(0, ":0");
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert_eq!(noted.unwrap().matches("-page.html").count(), 1, "once");
    assert!(!ended.stderr.contains("browser"), "{}", ended.stderr);

    let (ended, noted) = open(3, ":0");
    assert_eq!(ended.code, Some(0), "the page is written all the same");
    assert!(noted.is_some());
    assert!(
        ended.stderr.contains("no program opened"),
        "{}",
        ended.stderr
    );

    let (ended, noted) = open(0, "");
    assert_eq!((ended.code, noted), (Some(0), None));
    assert!(
        ended.stderr.contains("there is no desktop here"),
        "{}",
        ended.stderr
    );
}

#[test]
fn only_a_file_can_be_opened() {
    let nursery = nursery([sound("a", MADE)]);
    let ended = report(&nursery, &["--open"]);
    assert_eq!(ended.code, Some(2));
    assert!(
        ended
            .stderr
            .contains("`--open` needs a file on this machine"),
        "{}",
        ended.stderr
    );
    assert_eq!(ended.stdout, "");
}
