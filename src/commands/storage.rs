//! Object storage is reached as the service is: with the same certificates, retries and time-outs, whatever the source
//! of the batches.

use std::path::Path;

use crate::cli::ServiceArgs;
use crate::config::Settings;
use crate::error::Failure;
use crate::storage::cloud::{self, ObjectAddress};

/// Prepares for the `places` of a run; does nothing where all are files.
pub(super) fn prepare(
    args: &ServiceArgs,
    from_environment: &[String],
    places: &[Option<&Path>],
) -> Result<(), Failure> {
    if places
        .iter()
        .flatten()
        .any(|place| ObjectAddress::is_meant(place))
    {
        cloud::reach_as(&Settings::read(args, from_environment)?.client_options()?)?;
    }
    Ok(())
}
