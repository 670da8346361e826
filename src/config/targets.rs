//! The targets of crops in the config file.

use toml::{Table, Value};

use super::keys::{Problem, check_keys};
use crate::analysis;
use crate::analysis::statistics::{self, Decimal};
use crate::analysis::{Target, Targets};

/// Reads the `targets` of a config file.
pub(super) fn read(file: &Table) -> Result<Targets, Problem> {
    let tables = match file.get("targets") {
        None => return Ok(Targets::default()),
        Some(Value::Table(tables)) => tables,
        Some(_) => return Err(no_table("targets")),
    };
    let mut crops: Vec<(String, Target)> = Vec::new();
    for (crop, target) in tables {
        let Value::Table(target) = target else {
            return Err(no_table(&format!("targets.{crop}")));
        };
        check_keys(
            target.keys(),
            &analysis::TARGET_KEYS,
            &format!("targets.{crop}."),
        )?;
        let percent = |key: &str, most: u32| percent(target.get(key), crop, key, most);
        let name = crop.to_lowercase();
        if crops.iter().any(|(known, _)| known.to_lowercase() == name) {
            let hint = "upper and lower case are the same: keep one of them".to_owned();
            return Err((format!("`targets.{crop}` appears twice"), Some(hint)));
        }
        let target = Target {
            usable_rate_min: percent(analysis::TARGET_KEYS[0], 100)?,
            germination_rate_min: percent(analysis::TARGET_KEYS[1], 100)?,
            // Sizes may vary by more than their mean.
            coefficient_of_variation_max: percent(analysis::TARGET_KEYS[2], MOST_VARIATION)?,
        };
        crops.push((crop.clone(), target));
    }
    Ok(Targets { crops })
}

fn no_table(name: &str) -> Problem {
    let hint = "write `[targets.\"Tomato\"]`, and below it `usable_rate_min = 90`".to_owned();
    (format!("`{name}` is not a table"), Some(hint))
}

/// The largest plausible variation; a larger number is not a percentage.
const MOST_VARIATION: u32 = 10_000;

fn percent(
    value: Option<&Value>,
    crop: &str,
    key: &str,
    most: u32,
) -> Result<Option<Decimal>, Problem> {
    let text = match value {
        None => return Ok(None),
        Some(Value::Integer(number)) => number.to_string(),
        // The shortest text of the same number: as written.
        Some(Value::Float(number)) => number.to_string(),
        Some(_) => String::new(),
    };
    let number = statistics::ExactValue::parse(&text).map(statistics::ExactValue::decimal);
    let within = number.filter(|number| (Decimal::ZERO..=Decimal::from(most)).contains(number));
    within.map(Some).ok_or_else(|| {
        let hint = format!("it must be a percentage from 0 to {most}, such as `{key} = 90`");
        (
            format!("invalid value for `targets.{crop}.{key}`"),
            Some(hint),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Targets, Problem> {
        read(&text.parse().expect("TOML"))
    }

    #[test]
    fn targets_are_found_whatever_the_capitals() {
        let text = "[targets.\"Sweet pepper\"]\nusable_rate_min = 92.5\n[targets.tomato]\ngermination_rate_min = 90\n";
        let targets = parse(text).expect("targets");
        let pepper = targets.of(Some("sweet Pepper")).expect("a target");
        assert_eq!(pepper.usable_rate_min, Some(Decimal::new(925, 1)));
        assert_eq!(pepper.germination_rate_min, None);
        let tomato = targets.of(Some("Tomato")).expect("a target");
        assert_eq!(tomato.germination_rate_min, Some(Decimal::from(90)));
        assert!(targets.of(Some("Lettuce")).is_none() && targets.of(None).is_none());
        assert!(parse("").expect("none").is_empty());
        let uneven = "[targets.Leek]\ncoefficient_of_variation_max = 120.5\n";
        assert_eq!(parse(uneven).expect("targets").rows().len(), 1);
        let rows = targets.rows();
        let rows = rows.iter().map(|(key, value)| format!("{key} = {value}"));
        let expected = [
            "targets.\"Sweet pepper\".usable_rate_min = 92.5",
            "targets.\"tomato\".germination_rate_min = 90",
        ];
        assert_eq!(rows.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn mistakes_are_named() {
        for (text, cause) in [
            ("targets = 1", "`targets` is not a table"),
            ("[targets]\nTomato = 90", "`targets.Tomato` is not a table"),
            (
                "[targets.Tomato]\nusable_min = 90",
                "unknown key `targets.Tomato.usable_min`",
            ),
            (
                "[targets.Tomato]\nusable_rate_min = \"90\"",
                "invalid value for `targets.Tomato.usable_rate_min`",
            ),
            (
                "[targets.Tomato]\nusable_rate_min = 101",
                "invalid value for `targets.Tomato.usable_rate_min`",
            ),
            (
                "[targets.Tomato]\ncoefficient_of_variation_max = 10001",
                "invalid value for `targets.Tomato.coefficient_of_variation_max`",
            ),
            (
                "[targets.Tomato]\nusable_rate_min = nan",
                "invalid value for `targets.Tomato.usable_rate_min`",
            ),
            (
                "[targets.Tomato]\n[targets.tomato]",
                "`targets.tomato` appears twice",
            ),
        ] {
            assert_eq!(parse(text).expect_err(text).0, cause);
        }
    }
}
