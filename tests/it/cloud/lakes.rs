//! Lakes in object storage that follow an archive.

use serde_json::Value;

use super::{Bucket, assert_code};
use crate::archives::ArchiveFile;
use crate::fake::live::LiveService;
use crate::fake::{Batch, second};
use crate::harness::Output;

/// One batch in each of three months.
fn nursery() -> LiveService {
    let nursery = LiveService::start();
    for month in 1..=3 {
        add(&nursery, &format!("b{month}"), month);
    }
    nursery
}

fn add(nursery: &LiveService, id: &str, month: u32) {
    let created = second(&format!("2026-{month:02}-05T06:00:00Z"));
    nursery.state().put(id, Batch::new(id).created_at(created));
}

#[test]
fn a_lake_in_object_storage_follows_its_archive() {
    for bucket in Bucket::all() {
        let (nursery, shelf) = (nursery(), ArchiveFile::new());
        shelf.complete(&nursery, &["--full"]);
        let run = || -> Output {
            let template = bucket.address("lake/m={month}/b b.ndjson");
            let archive = shelf.path.to_str().unwrap();
            let words = ["export", "--archive", archive, "-o", &template];
            let flags = ["--only-changed", "--success-marker"];
            bucket.ended(&mut bucket.command(&[&words[..], &flags].concat()))
        };
        let month = |month: u32| format!("lake/m={month:02}/b b.ndjson");
        let assert_last_line = |ended: &Output, words: &str| {
            assert_code(ended, 0);
            assert!(ended.stderr.contains(words), "{ended:?}");
        };
        assert_last_line(&run(), "3 batches");
        let known = ["lake/_SUCCESS", "lake/_manifest.json"].map(str::to_owned);
        let with = |months: &[u32]| {
            let files = months.iter().map(|number| month(*number));
            known.iter().cloned().chain(files).collect::<Vec<_>>()
        };
        let mut listed = bucket.list();
        listed.sort();
        assert_eq!(listed, with(&[1, 2, 3]));
        assert_last_line(&run(), "nothing has changed");

        // Changed content of the same size shows whether the object is rewritten.
        let untouched = bucket.get(&month(3));
        let mut other = untouched.clone();
        other.reverse();
        bucket.ask("put", &month(3), &other);
        nursery.state().edit("b1", "comment", "\"seen\"");
        nursery.state().items.remove("b2");
        add(&nursery, "b4", 4);
        shelf.complete(&nursery, &["--full"]);
        assert_last_line(&run(), "2 files rewritten");
        let mut listed = bucket.list();
        listed.sort();
        assert_eq!(listed, with(&[1, 3, 4]));
        assert_eq!(bucket.get(&month(3)), other, "not rewritten");
        let text = String::from_utf8(bucket.get(&month(1))).unwrap();
        assert!(text.contains("seen"), "{text}");

        // An object of a different size, and a deleted one.
        bucket.ask("put", &month(3), b"{}");
        bucket.ask("delete", &month(4), &[]);
        assert_last_line(&run(), "2 files rewritten");
        assert_eq!(bucket.get(&month(3)), untouched);
        let manifest: Value = serde_json::from_slice(&bucket.get("lake/_manifest.json")).unwrap();
        assert_eq!(manifest["batches"], 3);
        let manifest = bucket.address("lake/_manifest.json");
        for number in [1, 3, 4] {
            let address = bucket.address(&month(number));
            assert_code(&bucket.verify(&[&address, "--manifest", &manifest]), 0);
        }
        bucket.assert_no_incomplete_uploads();

        // The whole lake is one set, by its folder or by its template.
        let template = bucket.address("lake/m={month}/b b.ndjson");
        for lake in [&bucket.address("lake/"), &bucket.address("lake"), &template] {
            let ended = bucket.verify(&[lake]);
            assert_code(&ended, 0);
            let words = format!("equals the manifest `{manifest}`: 3 batches");
            assert!(ended.stdout.contains(&words), "{ended:?}");
        }
        bucket.ask("put", "lake/m=09/b b.ndjson", &bucket.get(&month(1)));
        let ended = bucket.verify(&[&bucket.address("lake")]);
        assert_code(&ended, 7);
        assert!(ended.stderr.contains("1 batch more than once"), "{ended:?}");
        bucket.ask("delete", "lake/m=09/b b.ndjson", &[]);
        bucket.ask("delete", &month(4), &[]);
        let ended = bucket.verify(&[&template, "--manifest", &manifest]);
        assert_code(&ended, 7);
        assert!(ended.stdout.contains("missing: 1 file"), "{ended:?}");
        let ended = bucket.verify(&[&bucket.address("nothing/")]);
        assert_code(&ended, 2);
        let words = "there is no export in the folder";
        assert!(ended.stderr.contains(words), "{ended:?}");
    }
}
