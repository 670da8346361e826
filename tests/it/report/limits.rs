//! Verdicts and reasons exactly at the limits: written down by hand, and compared with the rules.

use super::MADE;
use super::reading::{attention, classes};
use super::verdicts::{MONDAY, WEEK, check};
use crate::judge::{Field, Rules};

/// Returns the verdict, by its CSS class, on a crop with these rates in the newest week and in the one before.
fn verdict(newest: &[&str], before: &[&str]) -> String {
    let mut field = Field::default();
    field
        .sow("Leek", MONDAY - WEEK, before)
        .sow("Leek", MONDAY, newest);
    let html = check(&field, &Rules::weekly(MADE), &[]);
    classes(&html)[0].to_owned()
}

/// Returns why a batch with this rate needs attention, with these rates in the week before.
fn reason(rate: &str, before: &[&str]) -> Option<String> {
    let mut field = Field::default();
    field
        .sow("Leek", MONDAY - WEEK, before)
        .sow("Leek", MONDAY, &[rate]);
    let html = check(&field, &Rules::weekly(MADE), &[]);
    let found = attention(&html).into_iter().next()?;
    Some(found.rows[0].reason.clone())
}

#[test]
fn two_points_are_a_change() {
    let alike = ["80.00"; 4];
    for (rate, expected) in [
        ("78.00", "down"),
        ("78.01", "usual"),
        ("77.99999999", "down"),
        ("78.00000001", "usual"),
        ("81.99", "usual"),
        ("82.00", "up"),
        ("81.99999999", "usual"),
        ("80.00", "usual"),
    ] {
        assert_eq!(verdict(&[rate; 3], &alike), expected, "{rate}");
    }
    // The median of an even number of batches lies between two.
    assert_eq!(
        verdict(&["50.00", "77.99", "78.01", "99.00"], &alike),
        "down"
    );
    assert_eq!(
        verdict(&["50.00", "78.00", "78.01", "99.00"], &alike),
        "usual"
    );
    // The median before is 80.005.
    let even = ["79.00", "80.00", "80.01", "81.00"];
    assert_eq!(verdict(&["78.00"; 3], &even), "down");
    assert_eq!(verdict(&["78.005"; 3], &even), "down");
    assert_eq!(verdict(&["78.01"; 3], &even), "usual");
}

#[test]
fn three_standard_errors_are_a_change() {
    // The deviation is 1, so that the error of four batches is 1.4826 * 1.2533 / 2, and three are 2.78721387.
    let spread = ["79.00", "79.00", "80.00", "81.00", "81.00"];
    for (rate, expected) in [
        ("77.21278613", "down"),
        ("77.21278614", "usual"),
        ("77.21", "down"),
        ("77.22", "usual"),
        ("82.78721387", "up"),
        ("82.78721386", "usual"),
    ] {
        assert_eq!(verdict(&[rate; 4], &spread), expected, "{rate}");
    }
    // With more batches the error is smaller: 16 need 1.39 points, so that the two points decide.
    assert_eq!(verdict(&["78.00"; 16], &spread), "down");
    assert_eq!(verdict(&["78.01"; 16], &spread), "usual");
    // A deviation of 1.35: ten batches need 2.38 points, three need 4.35.
    let spread = ["78.65", "78.65", "80.00", "81.35", "81.35"];
    assert_eq!(verdict(&["77.62"; 10], &spread), "down");
    assert_eq!(verdict(&["77.63"; 10], &spread), "usual");
    assert_eq!(verdict(&["75.65"; 3], &spread), "down");
    assert_eq!(verdict(&["75.66"; 3], &spread), "usual");
}

#[test]
fn three_batches_on_either_side_are_enough() {
    // Not enough to judge the crop, but the batches failed.
    let (three, two) = (["80.00"; 3], ["80.00"; 2]);
    assert_eq!(verdict(&["10.00"; 3], &three), "down");
    assert_eq!(verdict(&["10.00"; 2], &three), "failed");
    assert_eq!(verdict(&["10.00"; 3], &two), "few");
    assert_eq!(verdict(&["10.00"; 3], &["80.00", "80.00", "null"]), "few");
    assert_eq!(verdict(&["10.00", "10.00", "null"], &three), "failed");
    assert_eq!(verdict(&["70.00"; 2], &three), "few");
    assert_eq!(verdict(&["70.00"; 3], &two), "few");
}

#[test]
fn the_four_steps_before_count_and_no_others() {
    for (week, expected) in [
        (1, "down"),
        (2, "down"),
        (3, "down"),
        (4, "down"),
        (5, "few"),
    ] {
        // The last second of that week.
        let mut field = Field::default();
        field.sow("Leek", MONDAY, &["70.00"; 3]);
        field.sow("Leek", MONDAY - WEEK * (week - 1) - 3, &["80.00"; 3]);
        let html = check(&field, &Rules::weekly(MADE), &[]);
        assert_eq!(classes(&html)[0], expected, "{week} weeks before");
    }
}

#[test]
fn a_batch_is_low_beyond_three_deviations_and_from_a_point() {
    let low = |usual: &str| {
        Some(format!(
            "unusually low, the median of its crop is {usual} %"
        ))
    };
    let spread = ["79.00", "79.00", "80.00", "81.00", "81.00"];
    assert_eq!(reason("77.00", &spread), None);
    assert_eq!(reason("76.99", &spread), low("80.00"));
    assert_eq!(reason("76.99999999", &spread), low("80.00"));
    let alike = ["80.00"; 3];
    assert_eq!(reason("79.01", &alike), None);
    assert_eq!(reason("79.00", &alike), low("80.00"));
    assert_eq!(reason("79.00000001", &alike), None);
    // Three deviations are 0.99 points, and a point is more; then 1.02, which is more than a point.
    let narrow = ["79.67", "79.67", "80.00", "80.33", "80.33"];
    assert_eq!(reason("79.01", &narrow), None);
    assert_eq!(reason("79.00", &narrow), low("80.00"));
    let wider = ["79.66", "79.66", "80.00", "80.34", "80.34"];
    assert_eq!(reason("78.98", &wider), None);
    assert_eq!(reason("78.97", &wider), low("80.00"));
}

#[test]
fn a_batch_has_failed_below_half_of_the_median() {
    let wide = ["10.00", "20.00", "80.00", "99.00", "99.00"];
    let half = "less than half of its crop's usual 80.00 %";
    assert_eq!(reason("40.00", &wide), None);
    assert_eq!(reason("39.99", &wide).as_deref(), Some(half));
    assert_eq!(reason("39.99999999", &wide).as_deref(), Some(half));
    // Half of 80.005 is 40.0025.
    let even = ["10.00", "80.00", "80.01", "99.00"];
    assert_eq!(
        reason("40.01", &even).as_deref(),
        Some("unusually low, the median of its crop is 80.01 %")
    );
    let half = "less than half of its crop's usual 80.01 %";
    assert_eq!(reason("40.00", &even).as_deref(), Some(half));
    assert_eq!(
        reason("0.01", &wide).as_deref(),
        Some("less than half of its crop's usual 80.00 %")
    );
    assert_eq!(
        reason("0.00", &wide).as_deref(),
        Some("no usable seedlings")
    );
    // With fewer than three values before, the whole range counts, with the batch itself: 80, 80 and 40.
    assert_eq!(
        reason("40.00", &["80.00"; 2]).as_deref(),
        Some("unusually low, the median of its crop is 80.00 %")
    );
    assert_eq!(
        reason("39.99", &["80.00"; 2]).as_deref(),
        Some("less than half of its crop's usual 80.00 %")
    );
}
