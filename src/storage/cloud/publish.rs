//! Objects that are put in their places, several at a time.

use std::io;
use std::sync::Arc;

use tokio::task::JoinSet;

use super::address::ObjectAddress;
use super::object::{ObjectContent, ObjectContext};
use super::pending;
use crate::error::Failure;

/// Objects that are published at a time.
const AT_ONCE: usize = 8;
/// How many new objects a message names.
const NAMED: usize = 5;

/// Says which of `count` objects are new, and of which that is `unknown`.
pub(super) fn told_new(new: &[&ObjectAddress], unknown: &[&ObjectAddress], count: usize) -> String {
    let known = match new.len() {
        0 if unknown.is_empty() => format!("none of the {count} objects is new"),
        0 => "no other object is new".to_owned(),
        many => format!("{many} of {count} objects are new: {}", named(new)),
    };
    if unknown.is_empty() {
        return known;
    }
    let are = if unknown.len() == 1 { "is" } else { "are" };
    let unknown = format!("it is not known whether {} {are} new", named(unknown));
    format!("{unknown}; {known}")
}

/// Names the first of `addresses`.
fn named(addresses: &[&ObjectAddress]) -> String {
    let names: Vec<String> = addresses
        .iter()
        .take(NAMED)
        .map(|address| format!("`{address}`"))
        .collect();
    let more = match addresses.len() - names.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", names.join(", "))
}

/// What became of objects that were to be published.
#[derive(Default)]
pub(super) struct PublishedObjects {
    /// The places of those that are new.
    pub(super) new: Vec<usize>,
    pub(super) failure: Option<Failure>,
}

/// Publishes `objects`, each with what it is made of and whether it may replace another. After a failure no more
/// are begun.
pub(super) async fn publish_all(
    objects: Vec<(Arc<ObjectContext>, ObjectContent, bool)>,
) -> PublishedObjects {
    let mut published = PublishedObjects::default();
    let mut waiting = objects.into_iter().enumerate();
    let mut running = JoinSet::new();
    loop {
        while published.failure.is_none() && running.len() < AT_ONCE {
            let Some((place, (object, content, replace))) = waiting.next() else {
                break;
            };
            match pending::publish(&object) {
                Ok(()) => {
                    running.spawn(async move { (place, object.publish(content, replace).await) });
                }
                Err(error) => published.failure = Some(Failure::from_output(error)),
            }
        }
        match running.join_next().await {
            None => break,
            Some(Ok((place, Ok(())))) => published.new.push(place),
            Some(Ok((_, Err(failure)))) => {
                published.failure.get_or_insert(failure);
            }
            Some(Err(error)) => {
                let failure = Failure::from_output(io::Error::other(error));
                published.failure.get_or_insert(failure);
            }
        }
    }
    published.new.sort_unstable();
    published
}
