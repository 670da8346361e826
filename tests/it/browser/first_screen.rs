//! What a grower sees first, on a phone and on paper.

use serde_json::{Value, json};

use super::{Browser, assert_accessible, assert_fits, list, pages_on_paper};
use crate::fake::Batch;
use crate::fake::live::DAY;
use crate::report::{MADE, nursery, page, sound};

/// The height of a phone's screen in pixels.
const SCREEN: f64 = 844.0;

/// Six batches a week of each crop over twelve weeks. The first crop falls by ten points in the newest week.
fn crops(names: &[&str]) -> Vec<Batch> {
    let mut items = Vec::new();
    for (place, name) in names.iter().enumerate() {
        for week in 0..12_i64 {
            for number in 0..6_i64 {
                let fall = if week == 0 && place == 0 { 10 } else { 0 };
                let rate = 80 + i64::try_from(place).unwrap() - fall + number % 3;
                let id = format!("{place}-{week}-{number}");
                let created = MADE - week * 7 * DAY - number * 3600;
                let item = sound(&id, created)
                    .with("crop_type", json!(name).to_string())
                    .with("avg_usable_seedling_rate", format!("\"{rate}.00\""))
                    .with("analysis_link", format!("\"https://scan.example/{id}\""));
                items.push(item);
            }
        }
    }
    // One total failure in another crop.
    items.push(
        sound("dead", MADE - 60)
            .with("crop_type", json!(names[1]).to_string())
            .with("avg_usable_seedling_rate", "\"0.00\"")
            .with("comment", "\"heating failed in house 3\""),
    );
    items
}

/// Asserts that rates, changes and reasons are within the screen.
#[track_caller]
fn assert_readable(measured: &Value, width: u32, crops: usize) {
    assert_fits(measured, width);
    let rows = measured["rates"].as_array().unwrap();
    assert_eq!(rows.len(), crops);
    for row in rows {
        assert_ne!(row[1], "", "{row}");
        for right in [&row[2], &row[3]] {
            let right = right.as_f64().unwrap();
            assert!(right > 0.0 && right <= width.into(), "{row}");
        }
    }
    let reasons: Vec<f64> = list(&measured["reasons"], Value::as_f64);
    assert!(reasons.len() >= 8, "{reasons:?}");
    assert!(reasons.iter().all(|right| *right <= width.into()));
}

mod thorough {
    use super::*;

    #[test]
    #[ignore = "slow"]
    fn names_in_any_script_fit_on_a_phone() {
        let Some(browser) = Browser::open() else {
            return;
        };
        let long = "Lollo bionda with a name that goes on and on, house 12, ".repeat(3);
        let names = [
            "ต้นหอมญี่ปุ่นพันธุ์ดีจากเชียงใหม่",
            "كراث بلدي طازج من المشتل",
            "韭葱品种一号温室育苗盘第十二排左侧",
            "🥬🌱🌿 Leek 🧅",
            "Donaudampfschifffahrtsgesellschaftskapitänskohl",
            long.as_str(),
        ];
        let html = page(&nursery(crops(&names)), &[]);
        let visit = browser.visit(&html);
        assert_eq!((visit.console, visit.requests), (vec![], vec![]));
        for (width, measured) in [390, 1200]
            .into_iter()
            .zip(browser.measure(&html, [390, 1200]))
        {
            assert_readable(&measured, width, 6);
            assert_accessible(&measured);
        }
    }

    #[test]
    #[ignore = "slow"]
    fn a_phone_and_two_sheets_of_paper_are_enough_for_six_crops() {
        let Some(browser) = Browser::open() else {
            return;
        };
        let names = ["Leek", "Tomato", "Basil", "Lettuce", "Cucumber", "Cabbage"];
        let html = page(&nursery(crops(&names)), &[]);
        let [phone, desktop] = browser.measure(&html, [390, 1200]);
        assert_readable(&phone, 390, 6);
        assert_readable(&desktop, 1200, 6);
        for measured in [&phone, &desktop] {
            let lead = measured["lead"].as_f64().unwrap();
            assert!(lead > 0.0 && lead < SCREEN / 2.0, "{lead}");
            assert_eq!(measured["rates"][0][0], "Leek", "the worst is first");
            assert_accessible(measured);
        }
        let screens = phone["height"].as_f64().unwrap() / SCREEN;
        assert!(screens < 8.5, "{screens} screens");
        assert!(pages_on_paper(&browser, &html) <= 2);
    }
}
