//! The targets that the user sets for each crop. trayscan has no built-in targets.

use rust_decimal::Decimal;

/// The targets of all crops.
#[derive(Clone, Debug, Default)]
pub(crate) struct Targets {
    /// Each crop with its name as written in the config file.
    pub(crate) crops: Vec<(String, Target)>,
}

/// The targets of one crop, in percent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Target {
    pub(crate) usable_rate_min: Option<Decimal>,
    pub(crate) germination_rate_min: Option<Decimal>,
    pub(crate) coefficient_of_variation_max: Option<Decimal>,
}

/// The keys of a target in the config file.
const KEYS: [&str; 3] = [
    "usable_rate_min",
    "germination_rate_min",
    "coefficient_of_variation_max",
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
            let rows = KEYS.iter().zip(values);
            let rows = rows.filter_map(|(name, value)| Some((key(name), value?.normalize())));
            rows.collect::<Vec<_>>()
        };
        self.crops.iter().flat_map(of_crop).collect()
    }
}
