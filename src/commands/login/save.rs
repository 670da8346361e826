//! Saves a profile: the settings in the config file, and the secret in a file of its own.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::answers::is_given;
use crate::client::Credentials;
use crate::config::{self, ConfigDocument, Origin, SecretSource, Settings};
use crate::error::Failure;
use crate::secret::Secret;
use crate::storage::{PrivateFile, Storage};
use crate::terminal;
use crate::text::{self, for_shell};

/// A profile that is ready to be saved.
pub(super) struct NewProfile {
    /// The config file as it was before the check.
    document: ConfigDocument,
    name: String,
    /// Keys and their values.
    values: Vec<(&'static str, String)>,
    allow_http: bool,
    /// The path of the file with the secret; `None` if it stays where the profile has it.
    secret_file: Option<String>,
    /// That file, if it must be written.
    secret: Option<PrivateFile>,
    /// The file with the earlier secret, if it is no longer used.
    unused: Option<PathBuf>,
}

impl NewProfile {
    /// Prepares to save the settings that were given or typed. Others remain as they are in the config file.
    pub(super) fn new(
        document: ConfigDocument,
        name: String,
        settings: &Settings,
        credentials: &Credentials,
    ) -> Result<Self, Failure> {
        let Credentials {
            base_url,
            client_id,
            client_secret,
        } = credentials;
        let mut values = vec![
            ("base_url", base_url.to_string()),
            ("client_id", client_id.clone()),
        ];
        if is_given(Some(&settings.api)) {
            values.push(("api", settings.api.value.name().to_owned()));
        }
        let ca_cert = settings.ca_cert.as_ref();
        if let Some(ca_cert) = ca_cert.filter(|path| is_given(Some(path))) {
            values.push(("ca_cert", config::absolute(&ca_cert.value)?));
        }
        if is_given(Some(&settings.time_zone)) {
            values.push(("time_zone", settings.time_zone.value.name().to_owned()));
        }
        let is_allowed = base_url.is_https() || base_url.is_loopback();
        let source = settings.secret()?;
        let named = match source.map(|source| &source.value) {
            Some(SecretSource::File(path)) => config::stored_secret(path),
            _ => None,
        };
        // It stays where the profile has it already, unless that is the profile itself.
        let is_kept = source.is_some_and(|source| {
            matches!(source.origin, Origin::File(_))
                && !matches!(source.value, SecretSource::Text(_))
        });
        let own = secret_file(&document, &name, client_secret)?;
        let (secret_file, secret, unused) = match named {
            _ if is_kept => (None, None, None),
            Some(path) => {
                let path = config::absolute(&path)?;
                let is_other =
                    |own: &PathBuf| own.canonicalize().ok() != Path::new(&path).canonicalize().ok();
                let unused = Some(own.path).filter(|own| own.is_file() && is_other(own));
                (Some(path), None, unused)
            }
            None => (Some(config::absolute(&own.path)?), Some(own), None),
        };
        Ok(Self {
            document,
            name,
            values,
            allow_http: !is_allowed && is_given(Some(&settings.allow_http)),
            secret_file,
            secret,
            unused,
        })
    }

    /// Saves both files, or none. Other changes that were made to the config file meanwhile are kept. Returns what to tell
    /// people, and adds what was saved to `report`.
    pub(super) fn save(self, storage: &Storage, report: &mut Value) -> Result<String, Failure> {
        let _lock = storage.lock_private(&self.document.path)?;
        let document = self.changed()?;
        let Self {
            name,
            secret_file,
            secret,
            unused,
            ..
        } = self;
        let config = document.path.display().to_string();
        let place = match (&secret_file, &secret) {
            (Some(path), Some(_)) => format!(" and the secret in `{path}`"),
            _ => String::new(),
        };
        let usage = usage(&document, &name);
        let message = format!("saved the profile `{name}` in `{config}`{place}{usage}");
        let changed = document.text()?.map(|text| PrivateFile {
            path: document.path.clone(),
            text,
            keeps_attributes: true,
        });
        // The config file last: it must not refer to a secret that is not there.
        let files: Vec<PrivateFile> = secret.into_iter().chain(changed).collect();
        storage.replace_private(&files)?;
        if let Some(path) = unused {
            terminal::note(&format!(
                "an earlier secret is still in `{}`; delete the file if nothing else uses it",
                path.display()
            ));
        }
        report["profile"] = name.into();
        report["config"] = config.into();
        // Null if it stays where the profile had it.
        report["client_secret_file"] = secret_file.into();
        Ok(message)
    }

    /// Returns the newest config file with the change.
    fn changed(&self) -> Result<ConfigDocument, Failure> {
        let mut document = self.document.read_again()?;
        for (key, value) in &self.values {
            document.set(&self.name, key, value);
        }
        if self.allow_http {
            document.set(&self.name, "allow_http", true);
        }
        if let Some(path) = &self.secret_file {
            document.set_secret_file(&self.name, path);
        }
        document.set_missing_default_profile(&self.name);
        Ok(document)
    }
}

/// Says which flags select the profile, if it needs any.
fn usage(document: &ConfigDocument, name: &str) -> String {
    let config = (!document.has_default_path()).then(|| {
        let path = document.path.to_string_lossy();
        format!("--config {}", for_shell(&path))
    });
    let is_default = document.default_profile() == Some(name);
    let profile = (!is_default).then(|| format!("--profile {}", for_shell(name)));
    match text::join(config.into_iter().chain(profile), " ").as_str() {
        "" => String::new(),
        flags => format!("; use it with `{flags}`"),
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
    let path = &document.path;
    let config = path.file_name().unwrap_or_default().to_string_lossy();
    // `prod.toml`, `prod.conf` and `prod` are three config files.
    let (config, ending) = match config.strip_suffix(".toml") {
        Some(config) => (config, "secret"),
        None if config.contains('.') => (&*config, "secret"),
        None => (&*config, "client-secret"),
    };
    let file_name = format!("{config}.{}.{ending}", encoded(profile));
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
