//! `verify` of a table.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::{Files, Service};
use crate::database::{PASSWORD, shared};
use crate::harness::{Server, trayscan};

#[test]
fn verify_of_the_table_gives_the_digest_of_the_export() {
    let Some(database) = shared() else { return };
    let server = Server::start(&["--batches", "900", "--seed", "3"]);
    let service = Service::of(&server);
    let (name, files) = (database.fresh(), Files::new());
    let address = database.address_of(&format!("guarded:{PASSWORD}@127.0.0.1"), &name, "batches");
    let (manifest, text) = (files.at("m.json"), files.at("a.csv"));
    service.load(&address, &["--manifest", &manifest]);
    service.run(&["export", "-o", &text, "--manifest", &files.at("a.json")]);
    let receipt = files.json("m.json");
    assert_eq!(receipt["set_digest"], files.json("a.json")["set_digest"]);
    let entry = &receipt["files"][0];
    let shown = format!(
        "postgres://guarded@127.0.0.1:{}/{name}?table=batches",
        database.port
    );
    assert_eq!(
        entry,
        &json!({"path": shown, "format": "postgres", "batches": 900, "set_digest": receipt["set_digest"], "unknown_fields_digest": receipt["unknown_fields_digest"]})
    );
    assert!(!fs::read_to_string(&manifest).unwrap().contains(PASSWORD));

    for args in [
        &["--manifest", &manifest][..],
        &["--against", &text],
        &["--service"],
        &["--service", "--manifest", &manifest],
    ] {
        let ended = service.run(&[&["verify", &address], args].concat());
        assert_eq!(ended.code, Some(0), "{args:?} {ended:?}");
        assert!(!ended.stderr.contains("bytes"), "{ended:?}");
    }
    let ended = service.run(&["verify", &text, "--against", &address]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let ended = service.run(&["verify", &address, "--format", "json"]);
    let report: Value = ended.json();
    assert_eq!(report["digest"], receipt["set_digest"], "{report}");

    // The batches of a range cannot be found without their dates.
    let narrow = address.replace("batches", "narrow");
    let of_narrow = files.at("narrow.json");
    let flags = ["--fields", "batch_id,comment", "--start", "2026"];
    service.load(&narrow, &[&flags[..], &["--manifest", &of_narrow]].concat());
    let ended = service.run(&["verify", &narrow, "--manifest", &of_narrow]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    let why = "has no `batch_creation_date`";
    assert!(ended.stderr.contains(why), "{ended:?}");

    // Dates without a zone are those of UTC, whatever the zone of the session.
    database.sql(
        &name,
        &format!(
            "alter database {name} set timezone = 'America/New_York'; alter table batches alter batch_creation_date \
             type timestamp using batch_creation_date at time zone 'UTC'"
        ),
    );
    let ended = service.run(&["verify", &address, "--against", &text]);
    assert_eq!(ended.code, Some(0), "{ended:?}");

    database.sql(
        &name,
        "update batches set comment = 'other' where batch_id = (select min(batch_id) from batches)",
    );
    let ended = service.run(&["verify", &address, "--against", &text]);
    assert_eq!(ended.code, Some(7), "{ended:?}");
    assert!(ended.stdout.contains("comment"), "{ended:?}");
    let ended = service.run(&["verify", &address, "--manifest", &manifest]);
    assert_eq!(ended.code, Some(7), "{ended:?}");
}

#[test]
fn a_table_is_not_compared_with_the_manifest_of_a_selection() {
    let Some(database) = shared() else { return };
    let server = Server::start(&["--batches", "100"]);
    let service = Service::of(&server);
    let (name, files) = (database.fresh(), Files::new());
    let address = database.address(&name, "batches");
    let manifest = files.at("m");
    for selection in [&["--where", "crop_type=Leek"][..], &["--limit", "3"]] {
        service.load(&address, &[selection, &["--manifest", &manifest]].concat());
        let ended = service.run(&["verify", &address, "--manifest", &manifest]);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        assert!(
            ended.stderr.contains("may contain other batches"),
            "{ended:?}"
        );
    }
}

#[test]
fn a_table_of_many_exports_is_verified_range_by_range() {
    let Some(database) = shared() else { return };
    let server = Server::start(&["--batches", "3000", "--seed", "3"]);
    let service = Service::of(&server);
    let (name, files) = (database.fresh(), Files::new());
    let address = database.address(&name, "batches");
    for month in ["2026-04", "2026-05", "2026-06"] {
        let manifest = files.at(month);
        let last = service.load(
            &address,
            &["--start", month, "--end", month, "--manifest", &manifest],
        );
        assert!(!last.starts_with("0 batches"), "{last}");
    }
    for month in ["2026-04", "2026-05", "2026-06"] {
        for more in [&[][..], &["--service"]] {
            let args = ["verify", &address, "--manifest", &files.at(month)];
            let ended = service.run(&[&args[..], more].concat());
            assert_eq!(ended.code, Some(0), "{ended:?}");
            assert!(
                ended.stderr.contains("a table may contain many exports"),
                "{ended:?}"
            );
        }
    }
    database.sql(
        &name,
        "delete from batches where batch_id = (select min(batch_id) from batches \
         where batch_creation_date >= '2026-05-01Z' and batch_creation_date < '2026-06-01Z')",
    );
    for (month, code) in [("2026-04", 0), ("2026-05", 7), ("2026-06", 0)] {
        let ended = service.run(&["verify", &address, "--manifest", &files.at(month)]);
        assert_eq!(ended.code, Some(code), "{month} {ended:?}");
    }
}

#[test]
fn an_unreadable_table_is_reported() {
    let Some(database) = shared() else { return };
    let name = database.fresh();
    database.sql(&name, "create table other (a text)");
    for (table, code, why) in [
        ("nothing", 2, "has no table"),
        ("other", 2, "no `batch_id`"),
    ] {
        let ended = trayscan(&["verify", &database.address(&name, table)])
            .output()
            .expect(code);
        assert!(ended.stderr.contains(why), "{ended:?}");
    }
    let path = PathBuf::from("postgres://me:hidden-words@127.0.0.1:1/db");
    let ended = trayscan(&["verify", path.to_str().unwrap(), "--retries", "0"])
        .output()
        .expect(5);
    assert!(!ended.stderr.contains("hidden-words"), "{ended:?}");
}
