//! Protects the files that trayscan itself reads from being replaced by its output.

use std::path::{Path, PathBuf};

use crate::cli::ServiceArgs;
use crate::config::{expand_home, file};
use crate::error::{Failure, Kind};
use crate::storage::is_same_file;

/// Refuses to write to the config file or the file with the client secret. Each output comes with the flag
/// or the argument that names it.
pub(super) fn protect(
    args: &ServiceArgs,
    outputs: &[(&str, Option<&Path>)],
) -> Result<(), Failure> {
    let config = args.config.clone().or_else(file::default_path);
    // A secret that is there to be read, so only an output that exists can be in its place.
    let may_be_secret = outputs
        .iter()
        .any(|(_, output)| output.is_some_and(Path::is_file));
    let secret = may_be_secret.then(|| secret_file(args)).flatten();
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
            return Err(Failure::new(
                Kind::Usage,
                format!("{flag} `{name}` would replace {what} of trayscan"),
            )
            .hint("choose another name for the output"));
        }
    }
    Ok(())
}

/// Returns the file with the client secret, by flag, variable or profile.
fn secret_file(args: &ServiceArgs) -> Option<PathBuf> {
    if args.sandbox {
        return None;
    }
    let given = args.client_secret_file.clone();
    // A config file that cannot be read is an error later on.
    let path = given.or_else(|| {
        let profile = file::read(args.config.as_deref(), args.profile.as_deref()).ok()?;
        profile.text("client_secret_file").map(str::to_owned)
    })?;
    Some(expand_home(&path))
}
