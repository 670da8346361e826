//! Opens a file with the program that the desktop has for it.

use std::env;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::terminal;

/// How long a launcher may take to fail. One that still runs then has opened the file.
const PATIENCE: Duration = Duration::from_secs(2);

/// Opens `path`, or says why not. The file exists either way, so this is never a failure.
pub(super) async fn open(path: &Path) {
    let name = path.display();
    if !has_desktop() {
        let note = format!("there is no desktop here; open `{name}` in a browser");
        terminal::note(&note);
        return;
    }
    // A relative name could be taken for an option.
    let absolute = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    for command in open::commands(&absolute) {
        if is_opened(command).await {
            return;
        }
    }
    log::warn!("no program opened `{name}`; open it in a browser");
}

/// Returns whether there is a desktop that can show a file. Elsewhere a launcher may start a browser in the
/// terminal.
fn has_desktop() -> bool {
    let is_set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
    !cfg!(all(unix, not(target_os = "macos")))
        || ["DISPLAY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME"]
            .into_iter()
            .any(is_set)
}

async fn is_opened(mut command: Command) -> bool {
    let command = command
        .env_remove("TRAYSCAN_CLIENT_SECRET")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let Ok(mut child) = command.spawn() else {
        return false;
    };
    let pause = Duration::from_millis(20);
    for _ in 0..PATIENCE.as_millis() / pause.as_millis() {
        match child.try_wait() {
            Ok(None) => tokio::time::sleep(pause).await,
            Ok(Some(status)) => return status.success(),
            Err(_) => return false,
        }
    }
    true
}
