//! `sync --rebind`: the same service at a new address, or the same client with a new ID.

use std::path::Path;
use std::time::Duration;

use serde_json::json;

use crate::archive::{Archive, Owner};
use crate::commands::context::Context;
use crate::terminal;

pub(super) fn run(context: &Context, path: &Path, wait: Duration) -> anyhow::Result<()> {
    let settings = context.settings()?;
    let (base_url, client_id) = settings.service(&settings.client_options()?)?;
    let owner = Owner {
        base_url: base_url.to_string(),
        client_id: client_id.to_owned(),
    };
    // Opening an archive for a run creates a missing file.
    drop(Archive::read(path)?);
    let archive = Archive::open(path, wait)?;
    let before = archive.rebind(&owner);
    archive.close();
    let before = before?;
    let path = path.display().to_string();
    if before.as_ref().is_some_and(Owner::is_sandbox) {
        log::warn!(
            "`{path}` contains demo batches of the sandbox; `trayscan sync FILE --full` marks them as vanished, and fetches all batches of the service"
        );
    }
    let conclusion = match before {
        Some(before) if before == owner => format!("`{path}` already belongs to {owner}"),
        Some(before) => format!("`{path}` now belongs to {owner}; before, to {before}"),
        None => format!("`{path}` now belongs to {owner}"),
    };
    let Owner {
        base_url,
        client_id,
    } = owner;
    let result = json!({"archive": path, "base_url": base_url, "client_id": client_id});
    terminal::finish(Some(&conclusion), &result, None);
    Ok(())
}
