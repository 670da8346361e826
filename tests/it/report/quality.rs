//! Contradictions in the data, which the page lists and does not correct.

use super::reading::{body_rows, facts, findings, plain, section, tiles};
use super::{MADE, nursery, page, report, sound, without_figures};
use crate::fake::live::DAY;

#[test]
fn rounding_is_not_a_finding() {
    let at = MADE - DAY;
    let edge = [
        sound("a", at),
        sound("b", at).with("avg_non_germinated_seedlings", "\"16.02\""),
        sound("c", at).with("avg_non_germinated_seedlings", "\"15.98\""),
        sound("d", at).with("avg_non_usable_cells", "\"24.02\""),
        sound("e", at).with("avg_non_usable_cells", "\"23.98\""),
        // 87.51 % of 128 cells is 112.0128. The difference to 111.99 is within two roundings.
        sound("f", at)
            .with("avg_germination_rate", "\"87.51\"")
            .with("avg_germinated_seedlings", "\"111.99\""),
        sound("g", at)
            .with("avg_usable_seedling_rate", "\"81.26\"")
            .with("avg_usable_seedlings", "\"103.99\""),
        sound("h", at)
            .with("avg_usable_seedlings", "\"112.00\"")
            .with("avg_non_usable_cells", "\"16.00\"")
            .with("avg_usable_seedling_rate", "\"87.50\""),
        sound("i", at)
            .with("total_cells_per_tray", "null")
            .with("avg_germination_rate", "\"100.00\"")
            .with("avg_usable_seedling_rate", "\"0.00\""),
        sound("j", MADE),
    ];
    let html = page(&nursery(edge), &[]);
    assert_eq!(findings(&html), Vec::<String>::new());
    assert!(plain(section(&html, "quality")).contains("No contradictions found."));
}

#[test]
fn contradictory_figures_are_findings() {
    let at = MADE - DAY;
    let rate = |name: &str| format!("1 batch has a {name}");
    let germination_rate =
        rate("germination rate that does not match its germinated seedlings per cell");
    let usable_rate = rate("usable rate that does not match its usable seedlings per cell");
    let beyond = rate("rate below 0 or above 100 %");
    let germination =
        "1 batch has germinated and not germinated seedlings that do not add up to its cells"
            .to_owned();
    let usability =
        "1 batch has usable seedlings and other cells that do not add up to its cells".to_owned();
    let more = "1 batch has more usable seedlings than germinated ones".to_owned();
    let empty = "1 batch has no measurements at all".to_owned();
    let crop = "1 batch has no crop".to_owned();
    let cases = [
        (
            sound("x", at).with("avg_non_germinated_seedlings", "\"16.03\""),
            vec![&germination],
        ),
        (
            sound("x", at).with("avg_non_germinated_seedlings", "\"15.97\""),
            vec![&germination],
        ),
        (
            sound("x", at).with("avg_non_usable_cells", "\"24.03\""),
            vec![&usability],
        ),
        (
            sound("x", at).with("avg_germination_rate", "\"87.52\""),
            vec![&germination_rate],
        ),
        (
            sound("x", at)
                .with("avg_germination_rate", "\"87.51\"")
                .with("avg_germinated_seedlings", "\"111.98\""),
            vec![&germination_rate],
        ),
        (
            sound("x", at).with("avg_usable_seedling_rate", "\"81.27\""),
            vec![&usable_rate],
        ),
        (
            sound("x", at).with("avg_germination_rate", "\"100.01\""),
            vec![&beyond, &germination_rate],
        ),
        (
            sound("x", at).with("avg_usable_seedling_rate", "\"-0.01\""),
            vec![&beyond, &usable_rate],
        ),
        (
            sound("x", at)
                .with("avg_usable_seedlings", "\"113.00\"")
                .with("avg_non_usable_cells", "\"15.00\"")
                .with("avg_usable_seedling_rate", "\"88.28\""),
            vec![&more],
        ),
        (without_figures(sound("x", at)), vec![&empty]),
        (
            without_figures(sound("x", at)).with("number_of_images", "0"),
            vec![&empty],
        ),
        (sound("x", at).with("crop_type", "null"), vec![&crop]),
        (sound("x", at).with("crop_type", "\"\""), vec![&crop]),
    ];
    let told = [
        (
            sound("x", at).with("number_of_images", "0"),
            "1 batch has measurements but no images",
        ),
        (
            sound("x", at).with("avg_coefficient_of_variation", "null"),
            "1 batch is missing some measurements",
        ),
        (sound("x", MADE + 1), "1 batch was created in the future"),
    ]
    .map(|(item, words)| (item, vec![words.to_owned()]));
    let cases = cases.map(|(item, words)| (item, words.into_iter().cloned().collect::<Vec<_>>()));
    for (item, words) in cases.into_iter().chain(told) {
        let text = item.text();
        let html = page(&nursery([sound("good", at), item]), &[]);
        let words: Vec<String> = words
            .iter()
            .map(|words| format!("{words}: lot x"))
            .collect();
        assert_eq!(findings(&html), words, "{text}");
        // The finding is advice only: the batch still counts.
        assert_eq!(facts(&html)["Batches"], "2");
    }
}

#[test]
fn findings_have_a_count_and_name_the_first_three() {
    let odd = |id: &str| sound(id, MADE - DAY).with("crop_type", "null");
    let html = page(&nursery(["d", "b", "e", "a", "c"].map(odd)), &[]);
    assert_eq!(
        findings(&html),
        ["5 batches have no crop: for example lot a, lot b, lot c"]
    );
    assert!(html.contains("<em>no crop given</em>"));
    assert_eq!(facts(&html)["Crops"], "0");
}

#[test]
fn measurements_below_zero_are_findings() {
    let size = sound("a", MADE - DAY).with("avg_median_seedling_size_mm2", "\"-50.00\"");
    let variation = sound("b", MADE - DAY).with("avg_coefficient_of_variation", "\"-0.01\"");
    let zero = sound("c", MADE - DAY).with("avg_coefficient_of_variation", "\"0.00\"");
    let found = findings(&page(&nursery([size, variation, zero]), &[]));
    let expected =
        "2 batches have a coefficient of variation or a seedling size below 0: lot a, lot b";
    assert_eq!(found, [expected]);
}

#[test]
fn problems_with_received_batches_are_findings() {
    let at = MADE - DAY;
    let nursery = nursery([
        sound("a", at),
        sound("a", at).with("comment", "\"again\""),
        sound("b", at).with("batch_creation_date", "\"some day\""),
        sound("c", at).with("avg_germination_rate", "\"high\""),
    ]);
    let ended = report(&nursery, &[]);
    assert_eq!(ended.code, Some(7), "{}", ended.stderr);
    assert_eq!(ended.stdout, "");
    let html = page(&nursery, &["--lenient"]);
    assert_eq!(
        findings(&html),
        [
            "1 batch is missing some measurements: lot c",
            "1 batch has no valid date and is not in any week or month: lot b",
            "1 batch arrived again with different content; the first version counts",
            "2 batches break the interface; values that cannot be read count as missing",
        ]
    );
    // Its figures still count, although it is in no week.
    assert_eq!(facts(&html)["Batches"], "3");
    assert_eq!(body_rows(section(&html, "range"))[0][..2], ["Tomato", "3"]);
    assert_eq!(tiles(&html)[0][1], "2");
}
