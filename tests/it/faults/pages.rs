//! Faults of the pages: versions, cursors, order, duplicates, unknown fields.

use std::collections::HashSet;

use serde_json::Value;

use super::{ask, with, with_options};
use crate::harness::{Request, Server};
use crate::paging::ids;

#[test]
fn v2_missing_does_not_affect_version_1() {
    let server = with(&["v2-missing"]);
    for request in [
        Request::auth("v2"),
        Request::batches("v2", ""),
        Request::get("/v2/auth"),
    ] {
        let reply = server.send(&request);
        assert_eq!(
            (reply.status, &reply.json()["detail"]),
            (404, &Value::from("Not Found"))
        );
    }
    assert_eq!(server.flat("").len(), 250);
}

#[test]
fn version_1_truncates_above_a_thousand() {
    let at = |batches, options: &[&str], faults: &[&str]| {
        let options = [&["--batches", batches], options].concat();
        with_options(&options, faults).flat("").len()
    };
    assert_eq!(at("1001", &[], &["v1-truncate"]), 1000);
    assert_eq!(at("1000", &[], &["v1-truncate"]), 1000);
    assert_eq!(at("1001", &[], &[]), 1001, "off by default");
    assert_eq!(at("250", &["--v1-limit", "20"], &[]), 20);
    assert_eq!(at("250", &["--v1-limit", "20"], &["v1-truncate"]), 20);
}

#[test]
fn version_1_refuses_above_a_thousand() {
    let server = with_options(&["--batches", "1500"], &["v1-refuse"]);
    let token = server.token("v1");
    let ask = |server: &Server, token: &str, query: &str| {
        server.send(&Request::batches("v1", query).token(token))
    };
    assert_eq!(
        ask(&server, &token, "").invalid_fields(),
        ["query.start_date"]
    );
    assert_eq!(
        ask(&server, &token, "start_date=2026-01-01T00:00:00Z").status,
        200
    );
    assert_eq!(
        server.pages("").concat().len(),
        1500,
        "version 2 has no such limit"
    );

    let server = with_options(&["--v1-limit", "100"], &["v1-refuse:413"]);
    let reply = ask(&server, &server.token("v1"), "");
    assert_eq!(reply.status, 413);
    assert!(reply.json()["detail"].as_str().unwrap().contains("100"));
}

#[test]
fn a_cursor_expires_once_on_its_page_for_each_range() {
    let server = with_options(&["--page-size", "10"], &["cursor-expiry:3"]);
    let token = server.token("v2");
    for range in ["", "start_date=2025-01-01T00:00:00Z"] {
        let next = |query: &str| {
            let cursor = ask(&server, &token, query).json()["next_token"].clone();
            format!("next_token={}", cursor.as_str().unwrap())
        };
        let third = next(&next(range));
        assert_eq!(
            ask(&server, &token, &third).invalid_fields(),
            ["query.next_token"]
        );
        assert_eq!(ask(&server, &token, &third).status, 200, "once");
        assert_eq!(
            ask(&server, &token, &next(&next(range))).status,
            200,
            "once for this range"
        );
    }
}

#[test]
fn dates_may_be_required_with_a_cursor() {
    let server = with_options(&["--page-size", "10"], &["dates-with-cursor:required"]);
    let token = server.token("v2");
    let range = "start_date=2025-01-01T00:00:00Z&end_date=2026-01-01T00:00:00Z";
    let cursor = ask(&server, &token, range).json()["next_token"]
        .as_str()
        .unwrap()
        .to_owned();
    let alone = ask(&server, &token, &format!("next_token={cursor}"));
    assert_eq!(
        alone.invalid_fields(),
        ["query.start_date", "query.end_date"]
    );
    let half = ask(
        &server,
        &token,
        &format!("next_token={cursor}&end_date=2026-01-01T00:00:00Z"),
    );
    assert_eq!(half.invalid_fields(), ["query.start_date"]);
    assert_eq!(
        ask(&server, &token, &format!("{range}&next_token={cursor}")).status,
        200
    );
    assert_eq!(server.pages("").concat().len(), 250, "no dates to repeat");
}

#[test]
fn dates_may_be_refused_with_a_cursor() {
    let server = with_options(&["--page-size", "10"], &["dates-with-cursor:refused"]);
    let token = server.token("v2");
    let range = "start_date=2025-01-01T00:00:00Z";
    let cursor = ask(&server, &token, range).json()["next_token"]
        .as_str()
        .unwrap()
        .to_owned();
    let both = ask(&server, &token, &format!("{range}&next_token={cursor}"));
    assert_eq!(both.invalid_fields(), ["query.start_date"]);
    assert_eq!(
        ask(&server, &token, &format!("next_token={cursor}")).status,
        200
    );
}

#[test]
fn every_order_has_the_same_batches() {
    let plain = with(&[]).flat("");
    for fault in ["shuffle", "newest-first"] {
        let server = with_options(&["--page-size", "33"], &[fault]);
        let pages = server.pages("").concat();
        assert_ne!(pages, plain, "{fault}");
        assert_eq!(
            pages,
            server.flat(""),
            "{fault}: one order for both versions"
        );
        assert_eq!(
            pages,
            server.pages("").concat(),
            "{fault}: the same each time"
        );
        let (mut found, mut expected) = (ids(&pages), ids(&plain));
        if fault == "newest-first" {
            found.reverse();
            assert_eq!(found, expected);
        }
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "{fault}");
    }
}

#[test]
fn a_shuffled_range_has_the_same_batches() {
    let range = "start_date=2025-01-01T00:00:00Z&end_date=2025-12-31T23:59:59Z";
    let sorted = |server: &Server| {
        let batches = server.pages(range).concat();
        let mut ids: Vec<String> = ids(&batches).into_iter().map(String::from).collect();
        ids.sort_unstable();
        ids
    };
    let shuffled = with_options(&["--page-size", "7"], &["shuffle"]);
    assert_eq!(sorted(&shuffled), sorted(&with(&[])));
}

#[test]
fn duplicates_appear_on_the_next_page_and_at_the_end() {
    let plain = with(&[]).flat("");
    let server = with_options(&["--page-size", "50"], &["duplicates:0.2"]);
    let pages = server.pages("");
    let all = pages.concat();
    let distinct: HashSet<&str> = ids(&all).into_iter().collect();
    assert_eq!(distinct.len(), 250);
    assert!((270..340).contains(&all.len()), "{}", all.len());
    let first: HashSet<&str> = ids(&pages[0]).into_iter().collect();
    assert!(
        ids(&pages[1]).iter().any(|id| first.contains(id)),
        "between pages"
    );
    assert!(
        all.iter().all(|batch| plain.contains(batch)),
        "with the same content"
    );
    assert_eq!(all.len(), server.flat("").len(), "in version 1 as well");
    assert_eq!(with(&["duplicates:1"]).flat("").len(), 500);
}

#[test]
fn empty_pages_are_not_the_end() {
    let server = with_options(&["--page-size", "25"], &["empty-pages:0.5"]);
    let pages = server.pages("");
    let empty = pages.iter().filter(|page| page.is_empty()).count();
    assert!((1..10).contains(&empty), "{empty}");
    assert_eq!(pages.concat(), server.flat(""));
    let server = with_options(&["--page-size", "25"], &["empty-pages:1"]);
    assert_eq!(server.pages("").len(), 20);
}

#[test]
fn unknown_fields_are_added_to_the_known_ones() {
    let plain = with(&[]).flat("");
    for (known, more) in plain.iter().zip(with(&["unknown-fields"]).flat("")) {
        let (known, more) = (known.as_object().unwrap(), more.as_object().unwrap());
        assert_eq!(more.len(), known.len() + 2);
        assert!(known.iter().all(|(field, value)| more[field] == *value));
        assert!(more["scanner"].is_object());
    }
}
