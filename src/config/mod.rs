//! Settings: the values in effect, where each came from, and how to read the client secret.
//!
//! Start with `table`, which lists all settings, and `settings`: all precedence is there (flag, environment variable,
//! config file, default). The flags themselves are made in `cli`. What the values do is left to `client` and the commands.

// All settings, and their names.
mod table;

// The values in effect.
mod settings;

// The config file.
mod document;
pub(crate) mod file;
mod profile;

// Where the client secret is stored, and the command that prints it.
mod secret_source;

pub(crate) use document::ConfigDocument;
pub(crate) use file::absolute;
pub(crate) use profile::Profile;
pub(crate) use secret_source::{SecretSource, stored_secret};
pub(crate) use settings::{Given, Origin, Setting, Settings};
pub(crate) use table::{FlagValue, SETTINGS, SettingInfo, template};
