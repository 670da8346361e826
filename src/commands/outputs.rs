//! Checks and prepares the outputs of a run before it starts.

use std::path::{Path, PathBuf};

use super::context::Context;
use crate::config::file;
use crate::error::Failure;
use crate::storage::cloud::ObjectAddress;
use crate::storage::{Storage, is_same_file};

/// Refuses to overwrite the config file or the client secret file. Each output is paired with the flag or argument that
/// names it.
pub(super) fn protect_own_files(
    context: &Context,
    outputs: &[(&str, Option<&Path>)],
) -> Result<(), Failure> {
    let config = context.service.config.clone().or_else(file::default_path);
    // The secret file exists, so an output that does not cannot be the same file.
    let may_be_secret = outputs
        .iter()
        .any(|(_, output)| output.is_some_and(Path::is_file));
    let secret = may_be_secret.then(|| secret_file(context)).flatten();
    for (path, what) in [
        (config, "the config file"),
        (secret, "the client secret file"),
    ] {
        let Some(path) = path else { continue };
        for (flag, output) in outputs {
            let Some(output) = output.filter(|output| is_same_file(output, &path)) else {
                continue;
            };
            let name = output.display();
            return Err(Failure::usage(
                format!("{flag} `{name}` would overwrite {what}"),
                "choose another name for the output",
            ));
        }
    }
    Ok(())
}

/// Returns the client secret file, from the flag, the variable or the profile.
fn secret_file(context: &Context) -> Option<PathBuf> {
    if context.service.sandbox {
        return None;
    }
    // A config file that cannot be read fails later.
    context.settings().ok()?.secret_file.clone()
}

/// Returns the storage, with access to object storage if any of `locations` is there. It uses the certificates, retries
/// and time-outs of the service, wherever the batches are from.
pub(super) fn prepare_storage(
    context: &Context,
    locations: &[Option<&Path>],
) -> Result<Storage, Failure> {
    let mut locations = locations.iter().flatten();
    if !locations.any(|location| ObjectAddress::is_meant(location)) {
        return Ok(context.storage.clone());
    }
    let options = context.settings()?.client_options()?;
    context.storage.with_options(&options)
}
