//! Saves a profile: the settings in the config file, and the secret in a file of its own.

use std::path::{Path, PathBuf};

use super::answers::is_given;
use crate::client::Credentials;
use crate::config::{self, ConfigDocument, SecretSource, Settings};
use crate::error::Failure;
use crate::secret::Secret;
use crate::storage::{PrivateFile, Storage};

/// A profile that is ready to be saved.
pub(super) struct NewProfile {
    document: ConfigDocument,
    name: String,
    /// The file with the secret, unless an existing one is used.
    secret: Option<PrivateFile>,
}

impl NewProfile {
    /// Prepares to save the settings that were given or typed. Others remain as they are in the config file.
    pub(super) fn new(
        mut document: ConfigDocument,
        name: String,
        settings: &Settings,
        credentials: &Credentials,
    ) -> Result<Self, Failure> {
        let Credentials {
            base_url,
            client_id,
            client_secret,
        } = credentials;
        document.set(&name, "base_url", base_url.to_string());
        document.set(&name, "client_id", client_id);
        if is_given(Some(&settings.api)) {
            document.set(&name, "api", settings.api.value.name());
        }
        if let Some(ca_cert) = settings
            .ca_cert
            .as_ref()
            .filter(|path| is_given(Some(path)))
        {
            document.set(&name, "ca_cert", config::absolute(&ca_cert.value)?);
        }
        if is_given(Some(&settings.time_zone)) {
            document.set(&name, "time_zone", settings.time_zone.value.name());
        }
        let is_allowed = base_url.is_https() || base_url.is_loopback();
        if !is_allowed && is_given(Some(&settings.allow_http)) {
            document.set(&name, "allow_http", true);
        }
        let secret = match SecretPlace::of(settings)? {
            SecretPlace::Current => None,
            SecretPlace::Named(path) => {
                document.set_secret_file(&name, &config::absolute(&path)?);
                None
            }
            SecretPlace::Own => {
                let file = secret_file(&document, &name, client_secret)?;
                document.set_secret_file(&name, &config::absolute(&file.path)?);
                Some(file)
            }
        };
        document.set_missing_default_profile(&name);
        Ok(Self {
            document,
            name,
            secret,
        })
    }

    /// Saves both files, or none.
    pub(super) fn save(self, storage: &Storage) -> Result<SavedProfile, Failure> {
        let Self {
            document,
            name,
            secret,
        } = self;
        let config = document.path().display().to_string();
        let secret_file = secret.as_ref();
        let secret_file = secret_file.map(|secret| secret.path.display().to_string());
        let place = secret_file.as_ref();
        let place = place.map_or_else(String::new, |path| format!(" and the secret in `{path}`"));
        let usage = match document.default_profile() {
            Some(default) if default == name => String::new(),
            _ => format!("; use it with `--profile {name}`"),
        };
        let message = format!("saved the profile `{name}` in `{config}`{place}{usage}");
        let changed = document.text()?.map(|text| PrivateFile {
            path: document.path().to_owned(),
            text,
            keeps_attributes: true,
        });
        // The config file last: it must not refer to a secret that is not there.
        let files: Vec<PrivateFile> = secret.into_iter().chain(changed).collect();
        storage.replace_private(&files)?;
        Ok(SavedProfile {
            message,
            profile: name,
            config,
            secret_file,
        })
    }
}

/// What was saved.
pub(super) struct SavedProfile {
    /// For people.
    pub(super) message: String,
    pub(super) profile: String,
    /// The path of the config file.
    pub(super) config: String,
    /// The path of the file with the secret, if it was written.
    pub(super) secret_file: Option<String>,
}

/// Where the secret will be.
enum SecretPlace {
    /// Where the profile has it already.
    Current,
    /// In a file that the user named.
    Named(PathBuf),
    /// In a file beside the config file.
    Own,
}

impl SecretPlace {
    fn of(settings: &Settings) -> Result<Self, Failure> {
        let secret = settings.secret()?;
        Ok(match secret {
            Some(secret) if matches!(secret.origin, config::Origin::File(_)) => Self::Current,
            Some(secret) => match &secret.value {
                SecretSource::File(path) => match config::stored_secret(path) {
                    Some(path) => Self::Named(path),
                    None => Self::Own,
                },
                SecretSource::Text(_) | SecretSource::Command(_) => Self::Own,
            },
            None => Self::Own,
        })
    }
}

/// The longest name of a profile in a file name, in bytes.
const LONGEST: usize = 120;

/// Returns the file for the secret of a profile, beside the config file.
fn secret_file(
    document: &ConfigDocument,
    profile: &str,
    secret: &Secret,
) -> Result<PrivateFile, Failure> {
    let path = document.path();
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let file_name = format!("{stem}.{}.secret", encoded(profile));
    let folder = path.parent().unwrap_or(Path::new(""));
    Ok(PrivateFile {
        path: config::absolute(&folder.join(file_name))?.into(),
        text: format!("{}\n", secret.expose()),
        keeps_attributes: false,
    })
}

/// Returns a different, safe part of a file name for each profile. Capital letters are encoded, too: some file systems do
/// not distinguish them from small ones.
fn encoded(profile: &str) -> String {
    let encode = |byte: u8| match byte {
        b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    let encoded: String = profile.bytes().map(encode).collect();
    if encoded.len() <= LONGEST {
        return encoded;
    }
    let digest = blake3::hash(profile.as_bytes()).to_hex();
    format!("{}~{}", &encoded[..LONGEST - 40], &digest[..32])
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_profile_has_a_safe_file_name_of_its_own() {
        for (profile, name) in [
            ("default", "default"),
            ("test_2-b", "test_2-b"),
            ("Prod", "%50rod"),
            ("../etc/x y", "%2E%2E%2Fetc%2Fx%20y"),
            ("é\n", "%C3%A9%0A"),
            ("%50rod", "%2550rod"),
        ] {
            assert_eq!(encoded(profile), name);
        }
        let long = ["a".repeat(300), "a".repeat(301), "é".repeat(300)];
        let names: HashSet<String> = long.iter().map(|name| encoded(name)).collect();
        assert_eq!(names.len(), 3);
        assert!(names.iter().all(|name| name.len() <= LONGEST));
    }
}
