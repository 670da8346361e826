//! `report`: the page, and its figures compared with those of an export.

// Reads the parts of the page.
mod reading;

// The expected texts about the newest step.
mod expected;

// Every figure, recomputed from an export.
mod figures;

// Verdicts on data sets built for them.
mod verdicts;

// Verdicts and reasons exactly at the limits.
mod limits;

// Verdicts by day, month and in time zones, and of random data.
mod calendars;

// The batches that need attention.
mod attention;

// Contradictions in the data.
mod quality;

// The page as a whole: the same for any source, complete, self-contained.
mod page;

// `--open`.
mod open;

// Large nurseries, long texts.
mod sizes;

// Steps of time: named, partial or in the future.
mod steps;

// Targets.
mod targets;

// Values that are left out, and charts.
mod values;

use std::fs;
use std::path::Path;

use crate::fake;
use crate::fake::live::LiveService;
use crate::fake::{Answer, Batch, DECIMALS, FakeService, token};
use crate::harness::{Output, Service, trayscan};

pub(crate) use page::assert_self_contained;
pub(crate) use reading::plain;

/// The time of the report: a Wednesday at noon.
pub(crate) const MADE: i64 = 1_781_092_800;
const MADE_TEXT: &str = "10 June 2026, 12:00";

/// Runs `report` at the time `MADE`. Asserts that the output contains no secrets.
pub(crate) fn report(service: &impl Service, args: &[&str]) -> Output {
    report_at(MADE, service, args)
}

fn report_at(made: i64, service: &impl Service, args: &[&str]) -> Output {
    let mut command = trayscan(&["report"]);
    command.service(service);
    command
        .env("SOURCE_DATE_EPOCH", made.to_string())
        .args(args);
    let ended = command.output();
    let [_, _, secret] = service.access();
    for printed in [&ended.stdout, &ended.stderr] {
        assert!(!printed.contains(&secret), "a secret: {}", ended.stderr);
    }
    ended
}

/// Returns the page of a run that must succeed.
#[track_caller]
pub(crate) fn page(service: &impl Service, args: &[&str]) -> String {
    page_at(MADE, service, args)
}

#[track_caller]
fn page_at(made: i64, service: &impl Service, args: &[&str]) -> String {
    let ended = report_at(made, service, args);
    assert_eq!(ended.code, Some(0), "{args:?}: {}", ended.stderr);
    assert!(ended.stdout.ends_with("</html>"), "{args:?}");
    ended.stdout
}

/// A service with these batches on pages of 5000.
fn ready(batches: &[String]) -> FakeService {
    let pages: Vec<String> = batches.chunks(5000).map(|page| page.join(",")).collect();
    FakeService::start(move |request| {
        if request.path().ends_with("/auth") {
            return token();
        }
        let place = request.query("next_token");
        let place = place.map_or(0, |place| place.parse::<usize>().unwrap());
        let next = (place + 1 < pages.len()).then(|| (place + 1).to_string());
        Answer::ok(fake::page(&pages[place..=place], next.as_deref()))
    })
}

pub(crate) fn config(folder: &Path, text: &str) -> String {
    let path = folder.join("config.toml");
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// A valid batch: 128 cells, 112 germinated, 104 usable.
pub(crate) fn sound(id: &str, created: i64) -> Batch {
    let figures = [
        ("crop_type", "\"Tomato\""),
        ("avg_germinated_seedlings", "\"112.00\""),
        ("avg_non_germinated_seedlings", "\"16.00\""),
        ("avg_usable_seedlings", "\"104.00\""),
        ("avg_non_usable_cells", "\"24.00\""),
        ("avg_usable_seedling_rate", "\"81.25\""),
        ("avg_coefficient_of_variation", "\"15.00\""),
        ("avg_median_seedling_size_mm2", "\"100.00\""),
    ];
    let name = format!("\"lot {id}\"");
    let named = Batch::new(id).created_at(created).with("batch_name", &name);
    figures
        .into_iter()
        .fold(named, |item, (field, json)| item.with(field, json))
}

fn usable(id: &str, created: i64, rate: &str) -> Batch {
    sound(id, created).with("avg_usable_seedling_rate", format!("\"{rate}\""))
}

fn without_figures(mut item: Batch) -> Batch {
    for field in DECIMALS {
        item.set(field, "null");
    }
    item
}

pub(crate) fn nursery(items: impl IntoIterator<Item = Batch>) -> LiveService {
    let nursery = LiveService::start();
    for (number, item) in items.into_iter().enumerate() {
        nursery.state().put(&format!("{number:05}"), item);
    }
    nursery
}
