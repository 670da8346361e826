//! The verdicts as `summary -f json` writes them.

use serde_json::Value;

use super::{Crop, Newest, Tray, USABLE, median, rounded, values};

/// Returns the fields of a judged crop.
pub(crate) fn fields(crop: &Crop<'_>) -> String {
    let number = |units: Option<i128>| units.map_or_else(|| "null".to_owned(), rounded);
    let middle = |trays: &[&Tray]| {
        let rates = values(trays, USABLE);
        let median = number(median(&rates));
        format!("{{\"median\":{median},\"batches\":{}}}", rates.len())
    };
    let target = crop.target_state();
    format!(
        ",\"verdict\":\"{}\",\"usable_rate_change\":{},\"usable_rate_newest\":{},\"usable_rate_before\":{},\"target\":{},\"attention\":{}",
        crop.verdict,
        number(crop.change),
        middle(&crop.newest),
        middle(&crop.before),
        target.map_or_else(|| "null".to_owned(), |state| format!("\"{state}\"")),
        !crop.attention.is_empty(),
    )
}

/// Asserts that a summary by crop has these verdicts.
#[track_caller]
pub(crate) fn assert_verdicts(output: &Value, newest: &Newest<'_>) {
    let groups = output["groups"].as_array().unwrap();
    assert_eq!(groups.len(), newest.crops.len());
    for crop in &newest.crops {
        let is_own = |group: &&Value| group["crop_type"].as_str().unwrap_or("") == crop.name;
        let group = groups.iter().find(is_own).unwrap();
        let expected = fields(crop).replacen(',', "{", 1) + "}";
        let expected: Value = serde_json::from_str(&expected).unwrap();
        for (key, value) in expected.as_object().unwrap() {
            assert_eq!(&group[key], value, "{key} of {}", crop.name);
        }
    }
}
