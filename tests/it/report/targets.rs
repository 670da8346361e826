//! Targets: met, missed or without values.

use std::fs;

use tempfile::TempDir;

use super::reading::{attention, column, crops, lead, rows, section};
use super::{MADE, config, nursery, page, report, sound, usable, without_figures};
use crate::fake::live::DAY;

#[test]
fn targets_are_met_missed_or_without_values() {
    let nursery = nursery([
        usable("a", MADE - DAY, "90.00").with("crop_type", "\"At\""),
        usable("b", MADE - DAY, "89.99").with("crop_type", "\"Below\""),
        without_figures(sound("c", MADE - DAY)).with("crop_type", "\"Open\""),
        usable("d", MADE - DAY, "10.00").with("crop_type", "\"Untold\""),
    ]);
    let folder = TempDir::new().unwrap();
    let text = ["At", "Below", "Open", "Elsewhere"]
        .map(|crop| format!("[targets.{crop}]\nusable_rate_min = 90.0\n"))
        .concat();
    let config = config(folder.path(), &text);
    let html = page(&nursery, &["--config", &config]);
    let judged = column(&html, "target");
    let judged: Vec<(&str, &str)> = judged
        .iter()
        .map(|(crop, target)| (crop.as_str(), target.as_str()))
        .collect();
    assert_eq!(
        judged,
        [
            ("At", "✓ met: usable 90 %"),
            ("Below", "✗ missed: usable 90 %"),
            ("Open", "no values for usable 90 %"),
            ("Untold", ""),
        ]
    );
    // The crop that misses its target is the first, although nothing can be compared.
    assert_eq!(crops(&html)[0][0], "Below");
    assert!(
        lead(&html).contains("Below is below its target of 90 % with 89.99 % usable (1 batch)."),
        "{}",
        lead(&html)
    );
    let found = attention(&html);
    assert_eq!((found.len(), found[0].name.as_str()), (1, "Below"));
    let row = &found[0].rows[0];
    assert_eq!(
        (row.rate.as_str(), row.reason.as_str()),
        ("89.99 %", "below target of 90 %")
    );
    // The dashed line appears only for crops with a target.
    let trends = section(&html, "trends");
    assert_eq!(trends.matches("class=\"target\"").count(), 2);
    assert_eq!(
        section(&html, "crops").matches("class=\"target\"").count(),
        3 + 4
    );
    let html = page(&nursery, &[]);
    assert!(!section(&html, "crops").contains("target"));
    assert!(!section(&html, "trends").contains("class=\"target\""));
    assert!(!rows(section(&html, "crops"))[0].contains(&"target".to_owned()));
}

#[test]
fn a_target_is_met_if_all_its_limits_are() {
    let at = MADE - DAY;
    let crop = |id: &str, crop: &str| sound(id, at).with("crop_type", format!("\"{crop}\""));
    let nursery = nursery([
        crop("a", "Germinates"),
        crop("b", "Uneven"),
        crop("c", "Good"),
        crop("d", "Open").with("avg_coefficient_of_variation", "null"),
        crop("e", "Two"),
    ]);
    let folder = TempDir::new().unwrap();
    let config = config(
        folder.path(),
        "[targets.Germinates]\ngermination_rate_min = 95\n\
         [targets.Uneven]\nusable_rate_min = 80\ncoefficient_of_variation_max = 14.99\n\
         [targets.Good]\nusable_rate_min = 81.25\ngermination_rate_min = 87.5\ncoefficient_of_variation_max = 150\n\
         [targets.Open]\nusable_rate_min = 80\ncoefficient_of_variation_max = 20\n\
         [targets.Two]\nusable_rate_min = 90\ngermination_rate_min = 90\n",
    );
    let html = page(&nursery, &["--config", &config]);
    let judged = column(&html, "target");
    assert_eq!(judged["Germinates"], "✗ missed: germination 95 %");
    assert_eq!(judged["Uneven"], "✗ missed: CV 14.99 %");
    assert_eq!(
        judged["Good"],
        "✓ met: usable 81.25 %, germination 87.5 %, CV 150 %"
    );
    assert_eq!(judged["Open"], "no values for CV 20 %");
    assert_eq!(judged["Two"], "✗ missed: usable 90 %, germination 90 %");
    assert!(section(&html, "trends").contains("Dashed: your target."));
    // Without the line, the legend does not mention it.
    let other = "[targets.Germinates]\ngermination_rate_min = 95\n";
    fs::write(&config, other).unwrap();
    let html = page(&nursery, &["--config", &config]);
    assert!(
        !section(&html, "trends").contains("Dashed")
            && section(&html, "crops").contains("target-missed")
    );
}

#[test]
fn a_misspelled_crop_in_a_target_gets_a_suggestion() {
    let at = MADE - DAY;
    let nursery = nursery([
        sound("a", at),
        sound("b", at).with("crop_type", "\"Lettuce\""),
    ]);
    let folder = TempDir::new().unwrap();
    for (target, note) in [
        (
            "tomatoe",
            Some("`[targets.\"tomatoe\"]`; did you mean \"Tomato\"?"),
        ),
        ("Lettuce", None),
        ("Chrysanthemum", None),
    ] {
        let text = format!("[targets.{target}]\nusable_rate_min = 10\n");
        let config = config(folder.path(), &text);
        let ended = report(&nursery, &["--config", &config]);
        assert_eq!(ended.code, Some(0), "{}", ended.stderr);
        match note {
            Some(note) => assert!(ended.stderr.contains(note), "{}", ended.stderr),
            None => assert!(!ended.stderr.contains("did you mean"), "{}", ended.stderr),
        }
        assert_eq!(ended.stdout.contains(">target</th>"), target == "Lettuce");
    }
    // A crop with its own target is not suggested.
    let text = "[targets.Tomatoe]\nusable_rate_min = 10\n[targets.Tomato]\nusable_rate_min = 10\n";
    let ended = report(&nursery, &["--config", &config(folder.path(), text)]);
    assert!(!ended.stderr.contains("did you mean"), "{}", ended.stderr);
}

#[test]
fn a_narrowly_missed_target_is_shown_with_enough_digits() {
    let nursery = nursery([
        usable("a", MADE, "89.999"),
        sound("b", MADE).with("avg_coefficient_of_variation", "\"15.0001\""),
    ]);
    let folder = TempDir::new().unwrap();
    let text = "[targets.Tomato]\nusable_rate_min = 90\ncoefficient_of_variation_max = 15\n";
    let config = config(folder.path(), text);
    let html = page(&nursery, &["--config", &config]);
    let found = attention(&html);
    let rows: Vec<(&str, &str)> = found[0]
        .rows
        .iter()
        .map(|row| (row.rate.as_str(), row.reason.as_str()))
        .collect();
    assert_eq!(
        rows,
        [
            ("81.25 %", "below target of 90 %"),
            ("89.999 %", "below target of 90 %"),
        ]
    );
    let html = page(&nursery, &["--config", &config, "--where", "batch_id=b"]);
    assert_eq!(attention(&html)[0].rows[0].reason, "below target of 90 %");
    fs::write(
        &config,
        "[targets.Tomato]\ncoefficient_of_variation_max = 15\n",
    )
    .unwrap();
    let html = page(&nursery, &["--config", &config]);
    let reason = &attention(&html)[0].rows[0].reason;
    assert_eq!(reason, "CV 15.0001 %, above target of 15 %");
    assert_eq!(column(&html, "target")["Tomato"], "✗ missed: CV 15 %");
}
