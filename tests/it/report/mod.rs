//! `report`: the page, and its figures compared with those of an export.

// Every figure, recomputed from an export.
mod figures;

// What needs attention: targets, outliers, findings.
mod attention;

// The page as a whole: the same for any source, complete, self-contained.
mod page;

// Steps of time: which are compared, partial or in the future.
mod steps;

// Values that are left out, targets, charts.
mod values;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::fake;
use crate::fake::live::LiveService;
use crate::fake::{Answer, Batch, DECIMALS, FakeService, token};
use crate::harness::{Output, Service, trayscan};

pub(crate) use page::assert_self_contained;

/// The time of the report: a Wednesday at noon.
pub(crate) const MADE: i64 = 1_781_092_800;
const MADE_TEXT: &str = "2026-06-10 12:00";

/// Runs `report` at the time `MADE`. Asserts that the output contains no secrets.
pub(crate) fn report(service: &impl Service, args: &[&str]) -> Output {
    let mut command = trayscan(&["report"]);
    command.service(service);
    command
        .env("SOURCE_DATE_EPOCH", MADE.to_string())
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
    let ended = report(service, args);
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

// Parsing the page.

/// Returns the text between each `start` and the next `end`.
fn parts<'a>(html: &'a str, start: &str, end: &str) -> Vec<&'a str> {
    let pieces = html.split(start).skip(1);
    pieces
        .map(|piece| piece.split(end).next().unwrap())
        .collect()
}

/// Returns the visible text: no tags, no escapes, single spaces.
pub(crate) fn plain(html: &str) -> String {
    let mut text = String::new();
    for (place, piece) in html.split('<').enumerate() {
        let shown = match place {
            0 => piece,
            _ => piece.split_once('>').unwrap().1,
        };
        text.push_str(shown);
    }
    for (escape, character) in [
        ("&#60;", "<"),
        ("&#62;", ">"),
        ("&#34;", "\""),
        ("&#39;", "'"),
        ("&nbsp;", " "),
        ("\u{a0}", " "),
        ("&#38;", "&"),
    ] {
        text = text.replace(escape, character);
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the section with the heading `id`.
fn section<'a>(html: &'a str, id: &str) -> &'a str {
    let start = format!("aria-labelledby=\"{id}\"");
    let found = parts(html, &start, "</section>");
    assert_eq!(found.len(), 1, "{id}");
    found[0]
}

/// Returns the cells of each row, without the text for screen readers.
fn rows(table: &str) -> Vec<Vec<String>> {
    let rows = parts(table, "<tr>", "</tr>").into_iter().map(|row| {
        let row = row.replace("<th", "<td").replace("</th>", "</td>");
        let cells = parts(&row, "<td", "</td>").into_iter().map(|cell| {
            let cell = cell.split("<span class=\"unseen\">").next().unwrap();
            // Join the list of reasons.
            plain(&format!("<{}", cell.replace("</li><li>", "; ")))
        });
        cells.collect()
    });
    rows.collect()
}

/// Returns the name, value and changes of each tile.
fn tiles(html: &str) -> Vec<Vec<String>> {
    let tiles = parts(section(html, "tiles"), "<li>", "</li>");
    let spans = |tile: &str| {
        let tile = tile
            .replace("<span aria-hidden=\"true\">", "")
            .replace("</span> ", " ");
        parts(&tile, "<span", "</span>")
            .into_iter()
            .map(|span| plain(&format!("<{span}")))
            .collect()
    };
    tiles.into_iter().map(spans).collect()
}

fn findings(html: &str) -> Vec<String> {
    let found = parts(section(html, "quality"), "<li>", "</li>");
    found.into_iter().map(plain).collect()
}

fn facts(html: &str) -> BTreeMap<String, String> {
    let facts = parts(html, "<div><dt>", "</dd></div>").into_iter();
    facts
        .map(|fact| fact.split_once("</dt><dd>").unwrap())
        .map(|(name, value)| (plain(name), plain(value)))
        .collect()
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
