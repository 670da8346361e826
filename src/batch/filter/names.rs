//! The names of fields, as users write them.

use crate::batch::{COLUMNS, find_column};
use crate::error::{Failure, Kind};
use crate::secret;
use crate::text;

/// Returns the column called `name`, or an error that lists all fields.
pub(super) fn field(name: &str) -> Result<usize, Failure> {
    find_column(name).ok_or_else(|| {
        let names = COLUMNS.map(|column| column.name).join(", ");
        let hint = match nearest_field(name) {
            Some(nearest) => format!("did you mean `{nearest}`? available fields: {names}"),
            None => format!("available fields: {names}"),
        };
        let name = secret::brief(name);
        Failure::new(Kind::Usage, format!("there is no field `{name}`")).hint(hint)
    })
}

/// Returns the field that `name` is, or was most likely meant to be.
pub(super) fn nearest_field(name: &str) -> Option<&'static str> {
    let names = COLUMNS.map(|column| column.name);
    // In a sentence, a blank is as good as an underscore.
    text::nearest(&name.replace(' ', "_"), names.into_iter())
}
