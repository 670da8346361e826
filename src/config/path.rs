//! Paths in settings: the home folder, and who can read a file with a secret.

use std::path::{Path, PathBuf};

use crate::error::Failure;
use crate::text;

/// Replaces a leading `~` with the home folder.
pub(super) fn expand_home(path: &str) -> PathBuf {
    let home = directories::BaseDirs::new().map(|dirs| dirs.home_dir().to_path_buf());
    match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(path),
    }
}

/// Returns an absolute path, as text for the config file.
pub(crate) fn absolute(path: &Path) -> Result<String, Failure> {
    let failure = || {
        let message = format!("`{}` cannot be saved in the config file", path.display());
        Failure::usage(message, "choose a path that is text in UTF-8")
    };
    let absolute = std::path::absolute(path).map_err(|error| failure().caused_by(error))?;
    let absolute = absolute.into_os_string().into_string();
    absolute.map_err(|_| failure())
}

/// Warns that others can read a file with a secret.
pub(super) fn warn_readable(path: &Path) {
    log::warn!(
        "other users can read `{}`, which contains a secret; run `chmod 600 {}`",
        path.display(),
        text::for_shell(&path.to_string_lossy())
    );
}

#[cfg(unix)]
pub(super) fn others_may_read(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path).is_ok_and(|metadata| metadata.permissions().mode() & 0o044 != 0)
}

#[cfg(not(unix))]
pub(super) fn others_may_read(_: &Path) -> bool {
    false
}
