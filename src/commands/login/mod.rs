//! `login`: asks for the address and the credentials of the service, tests them, and saves them as a profile.

// Asks for what is not given.
mod answers;

// What is saved, and where.
mod save;

use self::save::NewProfile;
use crate::cli::{LoginArgs, ServiceArgs};
use crate::commands::check::{CheckResults, check_service};
use crate::commands::context::Context;
use crate::commands::runtime;
use crate::commands::source::ServiceSource;
use crate::config::{ConfigDocument, Origin, Setting};
use crate::error::Failure;
use crate::terminal::{self, MessageFormat};

/// The steps that must succeed. If the credentials are right, the profile is useful whatever the service answers next.
const NEEDED: [&str; 4] = ["connection", "TLS", "auth v2", "auth v1"];

pub(super) fn run(context: &Context, args: &LoginArgs) -> anyhow::Result<()> {
    if args.service.sandbox {
        let message = "`--sandbox` has its own credentials and needs no login";
        return Err(Failure::usage(message, "try `trayscan export --sandbox`").into());
    }
    let is_forced = args.force;
    runtime::run(
        context,
        async move |context| login(&context, is_forced).await,
        || "nothing was saved".to_owned(),
    )
}

async fn login(context: &Context, is_forced: bool) -> anyhow::Result<()> {
    let ServiceArgs {
        given,
        config,
        profile,
        ..
    } = &*context.service;
    let document = ConfigDocument::open(config.as_deref())?;
    // Before a person types anything.
    context.storage.check_private(&document.path)?;
    let name = document.profile_name(profile.as_deref())?;
    let mut settings = document.settings(given, &name);
    let options = settings.client_options()?;
    let stored_url = document.stored_base_url(&name);
    answers::complete(&mut settings, options.allow_http, stored_url)?;
    let credentials = settings.credentials(&options)?;
    let new = NewProfile::new(document, name, &settings, &credentials)?;

    let origin = |setting: &Option<Setting<String>>| {
        let setting = setting.as_ref();
        setting.map_or(Origin::Default, |setting| setting.origin.clone())
    };
    let origins = [origin(&settings.base_url), origin(&settings.client_id)];
    let source = ServiceSource::with(credentials, options)?;
    let mut results = CheckResults::new(
        MessageFormat::Text,
        "nothing was saved, because the check failed",
    );
    check_service(&source, &origins, &mut results).await?;
    let failed = results.failed_steps().join(", ");
    let mut report = results.report();
    if !is_forced && let Some(failure) = results.into_failure(|step| NEEDED.contains(&step)) {
        return Err(failure.into());
    }
    if !failed.is_empty() {
        log::warn!("saving the profile although the check failed: {failed}");
    }
    let message = new.save(&context.storage, &mut report)?;
    terminal::finish(Some(&message), &report, None);
    Ok(())
}
