//! Settings: the values in effect, where each came from, and how to read the client secret.
//!
//! Start with `settings`: all precedence is there (flag, environment variable, config file, default). It takes the
//! flags from `cli` as they were parsed. What the values do is left to `client` and the commands.

// The values in effect.
mod settings;

// The config file.
pub(crate) mod file;
mod keys;
mod targets;

// Where the client secret is stored, and the command that prints it.
mod command;
mod secret_source;

mod path;

pub(crate) use path::expand_home;
pub(crate) use secret_source::SecretSource;
pub(crate) use settings::Settings;
