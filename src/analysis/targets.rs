//! The targets that the user sets for each crop. trayscan has no built-in targets.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use crate::analysis::statistics::{Decimal, ExactValue};

/// The targets of all crops.
#[derive(Clone, Debug, Default)]
pub(crate) struct Targets {
    /// Each crop with its name as written in the config file.
    pub(crate) crops: Vec<(String, Target)>,
}

/// The targets of one crop, in percent, as in the config file.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Target {
    #[serde(deserialize_with = "percentage::<_, 100>")]
    pub(crate) usable_rate_min: Option<Decimal>,
    #[serde(deserialize_with = "percentage::<_, 100>")]
    pub(crate) germination_rate_min: Option<Decimal>,
    #[serde(deserialize_with = "percentage::<_, 10_000>")]
    pub(crate) coefficient_of_variation_max: Option<Decimal>,
}

/// The keys of a target in the config file, and the largest percentage of each.
pub(crate) const TARGET_KEYS: [(&str, u32); 3] = [
    ("usable_rate_min", 100),
    ("germination_rate_min", 100),
    // Sizes may vary by more than their mean. A larger number is not a percentage.
    ("coefficient_of_variation_max", 10_000),
];

impl Targets {
    /// Returns the target of `crop`, ignoring case.
    pub(crate) fn of(&self, crop: Option<&str>) -> Option<&Target> {
        let name = crop?.to_lowercase();
        let mut crops = self.crops.iter();
        let found = crops.find(|(crop, _)| crop.to_lowercase() == name);
        found.map(|(_, target)| target)
    }

    /// Returns the crops that have targets.
    pub(crate) fn crops(&self) -> impl Iterator<Item = &str> {
        self.crops.iter().map(|(crop, _)| crop.as_str())
    }

    /// Returns all targets with their keys in the config file.
    pub(crate) fn rows(&self) -> Vec<(String, Decimal)> {
        let of_crop = |(crop, target): &(String, Target)| {
            let values = [
                target.usable_rate_min,
                target.germination_rate_min,
                target.coefficient_of_variation_max,
            ];
            let key = |name| format!("targets.{crop:?}.{name}");
            let rows = TARGET_KEYS.iter().zip(values);
            let rows = rows.filter_map(|((name, _), value)| Some((key(name), value?.normalize())));
            rows.collect::<Vec<_>>()
        };
        self.crops.iter().flat_map(of_crop).collect()
    }
}

/// Reads a percentage from zero to `MOST`.
fn percentage<'de, D: Deserializer<'de>, const MOST: u32>(
    value: D,
) -> Result<Option<Decimal>, D::Error> {
    let text = match toml::Value::deserialize(value)? {
        toml::Value::Integer(number) => number.to_string(),
        // The shortest text of the same number: as written.
        toml::Value::Float(number) => number.to_string(),
        _ => String::new(),
    };
    let number = ExactValue::parse(&text).map(ExactValue::decimal);
    let within = number.filter(|number| (Decimal::ZERO..=Decimal::from(MOST)).contains(number));
    within
        .map(Some)
        .ok_or_else(|| D::Error::custom("not a percentage"))
}
