//! Paging: one consistent set for any page size and range, and cursors that cannot be forged.

use std::collections::HashSet;

use serde_json::Value;

use crate::data::moment;
use crate::harness::{Reply, Request, Server};

pub(crate) fn ids(batches: &[Value]) -> Vec<&str> {
    batches
        .iter()
        .map(|batch| batch["batch_id"].as_str().unwrap())
        .collect()
}

/// Requests one page with `query`.
fn page(server: &Server, token: &str, query: &str) -> Reply {
    server.send(&Request::batches("v2", query).token(token))
}

fn cursor_after(server: &Server, token: &str, query: &str) -> String {
    page(server, token, query).json()["next_token"]
        .as_str()
        .unwrap()
        .to_owned()
}

#[test]
fn pages_of_any_size_have_the_batches_of_version_1() {
    for size in [1, 7, 100, 249, 250, 251, 100_000] {
        let server = Server::start(&["--page-size", &size.to_string()]);
        let pages = server.pages("");
        assert_eq!(pages.concat(), server.flat(""), "{size}");
        assert_eq!(pages.len(), 250_usize.div_ceil(size), "{size}");
    }
}

#[test]
fn both_bounds_are_inclusive_and_a_fraction_is_after_its_second() {
    let server = Server::start(&["--batches", "3000"]);
    let all = server.flat("");
    let whole = all
        .iter()
        .find(|batch| !moment(batch).contains('.'))
        .unwrap();
    let broken = all
        .iter()
        .find(|batch| moment(batch).contains('.'))
        .unwrap();
    let is_inside = |batch: &Value, start: &str, end: &str| {
        let found = server
            .pages(&format!("start_date={start}Z&end_date={end}Z"))
            .concat();
        found.contains(batch)
    };
    let second = moment(whole);
    assert!(is_inside(whole, &second, &second));
    let second = &moment(broken)[..19];
    assert!(
        !is_inside(broken, second, second),
        "a fraction past a second is after that second"
    );
    assert!(is_inside(broken, second, "2026-12-31T00:00:00"));
}

#[test]
fn ranges_have_exactly_the_batches_within_their_bounds() {
    let server = Server::start(&["--batches", "3000", "--page-size", "100"]);
    let all = server.flat("");
    for (start, end) in [
        ("2024-02-29T00:00:00", "2024-02-29T23:59:59"),
        ("2025-01-01T00:00:00", "2026-01-01T00:00:00"),
        ("2023-11-01T00:00:00", "2026-10-31T23:59:59"),
    ] {
        let expected: Vec<Value> = all
            .iter()
            .filter(|batch| moment(batch).as_str() >= start && moment(batch).as_str() <= end)
            .cloned()
            .collect();
        let query = format!("start_date={start}Z&end_date={end}%2B00:00");
        assert_eq!(server.flat(&query), expected);
        assert_eq!(server.pages(&query).concat(), expected);
    }
}

#[test]
fn a_cursor_includes_its_range_and_refuses_another() {
    let server = Server::start(&["--page-size", "10"]);
    let token = server.token("v2");
    let range = "start_date=2025-01-01T00:00:00Z&end_date=2026-01-01T00:00:00Z";
    let cursor = cursor_after(&server, &token, range);

    let alone = page(&server, &token, &format!("next_token={cursor}")).json();
    for dates in [
        range,
        "start_date=2025-01-01T00:00:00%2B00:00",
        "end_date=2026-01-01T00:00:00Z",
    ] {
        let repeated = page(&server, &token, &format!("{dates}&next_token={cursor}")).json();
        assert_eq!(repeated, alone, "{dates}");
    }
    for dates in [
        "start_date=2025-01-02T00:00:00Z",
        "end_date=2026-01-01T00:00:01Z",
    ] {
        let other = page(&server, &token, &format!("{dates}&next_token={cursor}"));
        assert_eq!(other.invalid_fields(), ["query.next_token"], "{dates}");
    }
    let unbounded = cursor_after(&server, &token, "");
    let bounded = page(&server, &token, &format!("{range}&next_token={unbounded}"));
    assert_eq!(bounded.invalid_fields(), ["query.next_token"]);
}

#[test]
fn a_page_can_be_requested_again() {
    let server = Server::start(&["--page-size", "10"]);
    let token = server.token("v2");
    let query = format!("next_token={}", cursor_after(&server, &token, ""));
    assert_eq!(
        page(&server, &token, &query).json(),
        page(&server, &token, &query).json()
    );
}

#[test]
fn cursors_of_a_walk_are_unique_and_work_with_another_token() {
    let server = Server::start(&["--page-size", "10"]);
    let mut cursors = HashSet::new();
    let mut query = String::new();
    while let Some(cursor) =
        page(&server, &server.token("v2"), &query).json()["next_token"].as_str()
    {
        assert!(cursors.insert(cursor.to_owned()));
        query = format!("next_token={cursor}");
    }
    assert_eq!(cursors.len(), 24);
}

#[test]
fn forged_altered_and_foreign_cursors_are_refused() {
    let server = Server::start(&["--page-size", "10"]);
    let token = server.token("v2");
    let refused = |cursor: &str| {
        let reply = page(&server, &token, &format!("next_token={cursor}"));
        assert_eq!(reply.invalid_fields(), ["query.next_token"], "{cursor}");
    };
    let cursor = cursor_after(&server, &token, "");
    for place in 0..cursor.len() {
        let other = if &cursor[place..=place] == "A" {
            "B"
        } else {
            "A"
        };
        refused(&format!(
            "{}{other}{}",
            &cursor[..place],
            &cursor[place + 1..]
        ));
        refused(&cursor[..place + usize::from(place == 0)]);
    }
    for forged in [
        "%00",
        "0",
        "%F0%9F%8C%B1",
        "eyJvZmZzZXQiOjEwfQ",
        "AAAA%3D%3D",
        "..%2F..%2F",
    ] {
        refused(forged);
    }
    refused(&format!("{cursor}A"));
    refused(&format!("{cursor}%3D"));
    let other = Server::start(&["--page-size", "10"]);
    refused(&cursor_after(&other, &other.token("v2"), ""));
}

mod thorough {
    use super::*;

    #[test]
    #[ignore = "slow"]
    fn pages_of_many_batches_equal_version_1() {
        let server = Server::start(&["--batches", "10000", "--page-size", "999"]);
        assert_eq!(server.pages("").concat(), server.flat(""));
    }
}
