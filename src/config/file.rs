//! The config file: where it is, and which of its profiles to use.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::profile::{ConfigFile, Profile, in_file};
use crate::analysis::Targets;
use crate::client::bounded::ReadLimit;
use crate::error::Failure;
use crate::text;

/// The chosen profile of a config file; empty without one.
#[derive(Debug, Default)]
pub(super) struct ChosenProfile {
    pub(super) name: String,
    pub(super) profile: Profile,
    /// The names of the others, if none was requested and there is none with the default name.
    pub(super) others: Vec<String>,
    /// The targets of crops; the same in every profile.
    pub(super) targets: Targets,
    /// The client secret files of all profiles.
    pub(super) secret_files: Vec<String>,
}

/// Returns the default path of the config file.
pub(crate) fn default_path() -> Option<PathBuf> {
    let dirs = directories::BaseDirs::new()?;
    Some(dirs.config_dir().join("trayscan").join("config.toml"))
}

/// Returns `given`, or the default path.
pub(crate) fn path(given: Option<&Path>) -> Result<PathBuf, Failure> {
    let path = given.map(Path::to_path_buf).or_else(default_path);
    path.ok_or_else(|| {
        Failure::usage(
            "no default path for the config file: there is no home folder",
            "set the path with `--config` or TRAYSCAN_CONFIG",
        )
    })
}

/// Reads the profile called `requested`, or the default profile of the file.
///
/// A file or a profile that was named must exist; the defaults may be absent.
pub(super) fn read(path: Option<&Path>, requested: Option<&str>) -> Result<ChosenProfile, Failure> {
    let Some(place) = path.map(Path::to_path_buf).or_else(default_path) else {
        return no_file(requested);
    };
    let text = match read_text(&place) {
        Ok(text) => text,
        // Without a home folder, `HOME` is `/dev/null` or a folder that does not exist.
        Err(error)
            if path.is_none()
                && matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                ) =>
        {
            return no_file(requested);
        }
        Err(error) => return Err(unreadable(&place, error)),
    };
    let file = ConfigFile::parse(&text);
    let has_secret = file.as_ref().is_ok_and(ConfigFile::has_secret);
    let chosen = file.and_then(|file| choose(file, requested));
    let chosen = chosen.map_err(|mistake| in_file(mistake, &place))?;
    if has_secret && others_may_read(&place) {
        warn_readable(&place);
    }
    Ok(chosen)
}

pub(super) fn read_text(path: &Path) -> io::Result<String> {
    let path = path.to_owned();
    ReadLimit::config().read_text(move || File::open(path))
}

pub(super) fn unreadable(path: &Path, error: io::Error) -> Failure {
    let name = path.display().to_string();
    let origin = from_variable("TRAYSCAN_CONFIG", &name);
    let message = format!("cannot read the config file `{name}`{origin}");
    let hint = "check the path and its permissions; `trayscan login --config FILE` creates one";
    Failure::usage(message, hint).caused_by(error)
}

/// Names the variable that `value` came from, if it did.
fn from_variable(variable: &str, value: &str) -> String {
    match std::env::var(variable) {
        Ok(text) if text == value => format!(" ({variable})"),
        _ => String::new(),
    }
}

/// Returns the profiles in the file by their names; none if it cannot be read.
pub(crate) fn profiles(path: Option<PathBuf>) -> BTreeMap<String, Profile> {
    let text = path.or_else(default_path).map(|path| read_text(&path));
    let file = text.and_then(|text| ConfigFile::parse(&text.ok()?).ok());
    file.map(|file| file.profiles).unwrap_or_default()
}

fn no_file(requested: Option<&str>) -> Result<ChosenProfile, Failure> {
    match requested {
        None => Ok(ChosenProfile::default()),
        Some(name) => {
            let origin = from_variable("TRAYSCAN_PROFILE", name);
            Err(Failure::usage(
                format!("no profile `{name}`{origin}: there is no config file"),
                format!("`trayscan login --profile {name}` creates both"),
            ))
        }
    }
}

fn choose(mut file: ConfigFile, requested: Option<&str>) -> Result<ChosenProfile, Failure> {
    let targets = file.targets();
    let profiles = file.profiles.values();
    let secret_files = profiles.filter_map(|profile| profile.client_secret_file.clone());
    let secret_files = secret_files.collect();
    let preferred = file.default_profile.as_deref();
    let name = requested.or(preferred).unwrap_or("default").to_owned();
    let is_named = requested.or(preferred).is_some();
    match file.profiles.remove(&name) {
        Some(profile) => Ok(ChosenProfile {
            name,
            profile,
            targets,
            secret_files,
            others: Vec::new(),
        }),
        // No profile was requested, and the file has none: there are no settings of the service.
        None if !is_named => Ok(ChosenProfile {
            targets,
            secret_files,
            others: file.profiles.into_keys().collect(),
            ..ChosenProfile::default()
        }),
        None => {
            let origin = match requested {
                Some(_) => from_variable("TRAYSCAN_PROFILE", &name),
                None => " (`default_profile`)".to_owned(),
            };
            Err(no_profile(&name, &origin, &file))
        }
    }
}

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

/// The error if the file has no such profile; `origin` is where its name is from.
pub(super) fn no_profile(name: &str, origin: &str, file: &ConfigFile) -> Failure {
    let names: Vec<&str> = file.profiles.keys().map(String::as_str).collect();
    let available = format!("available profiles: {}", names.join(", "));
    let hint = match text::nearest(name, names.iter().copied()) {
        _ if names.is_empty() => {
            format!(
                "create it with `trayscan login --profile {}`",
                text::for_shell(name)
            )
        }
        Some(meant) => format!("did you mean `{meant}`? {available}"),
        None => available,
    };
    Failure::usage(format!("no profile `{name}`{origin}"), hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(text: &str, requested: Option<&str>) -> Result<ChosenProfile, (String, String)> {
        let file = ConfigFile::parse(text);
        file.and_then(|file| super::choose(file, requested))
            .map_err(Failure::into_texts)
    }

    #[test]
    fn the_requested_profile_is_read() {
        let text =
            "default_profile = \"b\"\n[profiles.a]\nretries = 1\n[profiles.b]\nretries = 2\n";
        let retries = |requested| choose(text, requested).expect("a profile").profile.retries;
        assert_eq!((retries(None), retries(Some("a"))), (Some(2), Some(1)));
        let (message, hint) = choose(text, Some("c")).expect_err("no such profile");
        assert_eq!(message, "no profile `c`");
        assert_eq!(hint, "available profiles: a, b");
        let text = "[profiles.staging]\n[profiles.production]\n";
        let (_, hint) = choose(text, Some("prodution")).expect_err("no such profile");
        let expected = "did you mean `production`? available profiles: production, staging";
        assert_eq!(hint, expected);
        let unnamed = choose(text, None).expect("no profile is needed");
        assert_eq!(unnamed.name, "");
    }
}
