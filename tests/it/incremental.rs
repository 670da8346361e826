//! `export --only-changed`: updates a lake from its archive, file by file.

// Lakes that are incomplete or damaged.
mod repairs;

// Settings that differ from those of the lake.
mod settings;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::archives::ArchiveFile;
use crate::fake::live::LiveService;
use crate::fake::{Batch, second};
use crate::harness::{Output, Run, trayscan};
use crate::verify::{assert_equal, verify};

const MONTHS: &str = "year={year}/month={month}/batches.ndjson";

/// A service, its archive, and a lake exported from the archive.
struct Scene {
    nursery: LiveService,
    shelf: ArchiveFile,
    folder: TempDir,
}

impl Scene {
    /// Creates three batches in each of four months, with two crops.
    fn new() -> Self {
        let scene = Self {
            nursery: LiveService::start(),
            shelf: ArchiveFile::new(),
            folder: TempDir::new().unwrap(),
        };
        for month in 1..=4 {
            for day in 1..=3 {
                let crop = if day == 1 { "\"Leek\"" } else { "\"Basil\"" };
                scene.add(&format!("b{month}{day}"), month, day, crop);
            }
        }
        scene.sync();
        scene
    }

    fn add(&self, id: &str, month: u32, day: u32, crop: &str) {
        let created = second(&format!("2026-{month:02}-{day:02}T06:00:00Z"));
        let item = Batch::new(id).created_at(created).with("crop_type", crop);
        self.nursery.state().put(id, item);
    }

    fn sync(&self) {
        self.shelf.complete(&self.nursery, &["--full"]);
    }

    fn lake(&self) -> PathBuf {
        self.folder.path().join("lake")
    }

    /// Returns a command that updates the lake.
    fn command(&self, template: &str, args: &[&str]) -> Run {
        let output = self.lake().join(template);
        let archive = self.shelf.path.to_str().unwrap();
        let common = ["export", "--archive", archive, "--only-changed", "-o"];
        trayscan(&[&common[..], &[output.to_str().unwrap()], args].concat())
    }

    #[track_caller]
    fn run(&self, template: &str, args: &[&str]) -> Output {
        self.command(template, args).output().expect(0)
    }

    /// Asserts that the lake equals a full export.
    #[track_caller]
    fn assert_equals_full_export(&self, template: &str, args: &[&str], what: &str) {
        let fresh = TempDir::new().unwrap();
        let output = fresh.path().join(template);
        let archive = self.shelf.path.to_str().unwrap();
        let common = ["export", "--archive", archive, "--manifest", "-o"];
        let all = [&common[..], &[output.to_str().unwrap()], args].concat();
        let ended = trayscan(&all).output();
        assert_eq!(ended.code, Some(0), "{what}: {ended:?}");
        let (lake, expected) = (files(&self.lake()), files(fresh.path()));
        assert_eq!(
            lake.keys().collect::<Vec<_>>(),
            expected.keys().collect::<Vec<_>>(),
            "{what}"
        );
        for (name, path) in &expected {
            if !name.starts_with('_') {
                let [is, should] = [&lake[name], path].map(|path| fs::read(path).unwrap());
                assert!(is == should, "{what}: {name} differs");
            }
        }
        let [is, should] = [self.lake(), fresh.path().to_owned()].map(|folder| manifest(&folder));
        for key in ["batches", "set_digest", "unknown_fields_digest", "complete"] {
            assert_eq!(is[key], should[key], "{what}: {key}");
        }
        assert_eq!(is["lake"]["digest"], should["lake"]["digest"], "{what}");
        assert_equal(&verify(&[self.lake().to_str().unwrap()]), what);
    }
}

fn manifest(folder: &Path) -> Value {
    serde_json::from_slice(&fs::read(folder.join("_manifest.json")).unwrap()).unwrap()
}

/// Returns all files below `folder`, by relative name.
fn files(folder: &Path) -> BTreeMap<String, PathBuf> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(inside) = folders.pop() {
        let entries = fs::read_dir(&inside).unwrap();
        let mut is_empty = true;
        for entry in entries {
            is_empty = false;
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_str().unwrap();
                found.insert(name.to_owned(), path.clone());
            }
        }
        assert!(!is_empty, "{} is empty", inside.display());
    }
    found
}

/// Returns the inode of each file: a rewritten file has a new one.
fn inodes(folder: &Path) -> BTreeMap<String, u64> {
    let files = files(folder).into_iter();
    files
        .map(|(name, path)| (name, fs::metadata(path).unwrap().ino()))
        .collect()
}

/// Returns the names of files that were rewritten, added or removed.
fn rewritten(before: &BTreeMap<String, u64>, after: &BTreeMap<String, u64>) -> Vec<String> {
    let names = before.keys().chain(after.keys());
    let mut changed: Vec<String> = names
        .filter(|name| before.get(*name) != after.get(*name))
        .cloned()
        .collect();
    changed.sort();
    changed.dedup();
    changed
}

#[test]
fn only_changed_files_are_rewritten() {
    let scene = Scene::new();
    let first = scene.run(MONTHS, &[]);
    assert!(first.stderr.contains("12 batches"), "{first:?}");
    scene.assert_equals_full_export(MONTHS, &[], "the first run");
    let before = inodes(&scene.lake());
    let nothing = scene.run(MONTHS, &[]);
    assert!(
        nothing.stderr.contains("nothing has changed"),
        "{nothing:?}"
    );
    assert_eq!(rewritten(&before, &inodes(&scene.lake())), [""; 0]);

    // One batch is edited, one is new in a new month, one moves to another month.
    scene.nursery.state().edit("b11", "comment", "\"seen\"");
    scene.add("b51", 5, 1, "\"Leek\"");
    let moved = "\"2026-03-09T06:00:00Z\"";
    scene
        .nursery
        .state()
        .edit("b21", "batch_creation_date", moved);
    scene.sync();
    let ended = scene.run(MONTHS, &[]);
    assert!(ended.stderr.contains("4 files rewritten"), "{ended:?}");
    let after = inodes(&scene.lake());
    let month = |month: u32| format!("year=2026/month={month:02}/batches.ndjson");
    let expected = [
        "_manifest.json".to_owned(),
        month(1),
        month(2),
        month(3),
        month(5),
    ];
    assert_eq!(rewritten(&before, &after), expected);
    scene.assert_equals_full_export(MONTHS, &[], "edited, added and moved");

    // One month loses its only batch, another loses one of three.
    for id in ["b51", "b12"] {
        scene.nursery.state().items.remove(id).unwrap();
    }
    scene.sync();
    let ended = scene.run(MONTHS, &[]);
    assert!(
        ended.stderr.contains("1 file rewritten, 1 file removed"),
        "{ended:?}"
    );
    let expected = ["_manifest.json".to_owned(), month(1), month(5)];
    assert_eq!(rewritten(&after, &inodes(&scene.lake())), expected);
    scene.assert_equals_full_export(MONTHS, &[], "lost");

    // A batch that returns, and a change in a field that is not exported.
    scene.add("b51", 5, 1, "\"Leek\"");
    scene.sync();
    scene.run(MONTHS, &[]);
    scene.assert_equals_full_export(MONTHS, &[], "returned");
    let few = ["--fields", "batch_id,crop_type"];
    scene.run(MONTHS, &few);
    let before = inodes(&scene.lake());
    scene
        .nursery
        .state()
        .edit("b41", "comment", "\"nobody sees it\"");
    scene.sync();
    scene.run(MONTHS, &few);
    let after = inodes(&scene.lake());
    assert_eq!(rewritten(&before, &after), [""; 0]);
    scene.assert_equals_full_export(MONTHS, &few, "some fields");
}

/// The set digest takes these values for equal, but text formats write them as received.
#[test]
fn another_spelling_of_a_value_is_a_change() {
    for template in [MONTHS, "{month}.csv", "{month}.json"] {
        let scene = Scene::new();
        scene.run(template, &[]);
        for (field, value) in [
            ("comment", "\"\""),
            ("avg_germination_rate", "\"12.5\""),
            ("avg_germination_rate", "\"12.500\""),
            ("batch_creation_date", "\"2026-01-01T06:00:00+00:00\""),
        ] {
            scene.nursery.state().edit("b11", field, value);
            scene.sync();
            scene.run(template, &[]);
            let what = format!("{template}: {field} {value}");
            scene.assert_equals_full_export(template, &[], &what);
        }
    }
}

#[test]
fn an_incomplete_archive_is_reported_even_without_changes() {
    let scene = Scene::new();
    scene.run(MONTHS, &[]);
    assert_eq!(manifest(&scene.lake())["complete"], true);
    let coverage: Vec<String> = scene.shelf.all("SELECT covered_through FROM coverage");
    let change = |sql: &str| {
        scene.shelf.open().execute(sql, []).unwrap();
    };
    let marker = scene.lake().join("_SUCCESS");
    scene.run(MONTHS, &["--success-marker"]);
    assert!(marker.exists());
    change("UPDATE coverage SET covered_from = '2026-02-01T00:00:00Z'");
    let ended = scene.run(MONTHS, &["--success-marker"]);
    assert!(
        ended.stderr.contains("not known to be complete"),
        "{ended:?}"
    );
    assert_eq!(manifest(&scene.lake())["complete"], false);
    assert!(!marker.exists());
    let ended = scene.run(MONTHS, &["--success-marker"]);
    assert!(!marker.exists());
    assert!(
        ended.stderr.contains("not known to be complete"),
        "{ended:?}"
    );
    change("UPDATE coverage SET covered_from = NULL");
    scene.run(MONTHS, &[]);
    scene.assert_equals_full_export(MONTHS, &[], "complete again");
    assert_eq!(coverage.len(), 1);
}

#[test]
fn a_lake_can_become_empty() {
    let scene = Scene::new();
    scene.run(MONTHS, &[]);
    scene.nursery.state().items.clear();
    scene.sync();
    let ended = scene.run(MONTHS, &[]);
    assert!(ended.stderr.contains("4 files removed"), "{ended:?}");
    assert_eq!(files(&scene.lake()).len(), 1);
    assert_equal(&verify(&[scene.lake().to_str().unwrap()]), "empty");
    scene.add("b11", 1, 1, "null");
    scene.sync();
    scene.run(MONTHS, &[]);
    scene.assert_equals_full_export(MONTHS, &[], "no longer empty");
}

#[test]
fn similar_names_and_fields_are_distinguished() {
    // Unknown fields are kept unless `--fields` is given, even with all known fields.
    let scene = Scene::new();
    scene.nursery.state().edit("b11", "mystery", "1");
    scene.sync();
    let header = scene.run(MONTHS, &["--where", "batch_id=b11"]);
    assert_eq!(header.code, Some(0));
    scene.run(MONTHS, &[]);
    let file = fs::read_to_string(scene.lake().join("year=2026/month=01/batches.ndjson")).unwrap();
    let first: Value = serde_json::from_str(file.lines().next().unwrap()).unwrap();
    let names: Vec<&str> = first
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    let names: Vec<&str> = names
        .into_iter()
        .filter(|name| *name != "mystery")
        .collect();
    let all = ["--fields", &names.join(",")];
    let ended = scene.run(MONTHS, &all);
    assert!(ended.stderr.contains("rewriting all files"), "{ended:?}");
    scene.assert_equals_full_export(MONTHS, &all, "all fields by name");
    // A crop name that engines would skip, and a lake path that starts with a dot.
    fs::remove_dir_all(scene.lake()).unwrap();
    scene.nursery.state().items.remove("b11");
    scene.add("b11", 1, 1, "null");
    scene.nursery.state().edit("b11", "crop_type", "\"_trial\"");
    scene.sync();
    let archive = scene.shelf.path.to_str().unwrap();
    for template in ["./lake/{crop_type}/b.csv", "lake/{crop_type}/b.csv"] {
        for args in [&[][..], &["--fields", "batch_id"]] {
            let words = [
                "export",
                "--archive",
                archive,
                "--only-changed",
                "-o",
                template,
            ];
            let mut command = trayscan(&[&words[..], args].concat());
            let ended = command.current_dir(scene.folder.path()).output().expect(0);
            assert!(!ended.stderr.contains("warning"), "{ended:?}");
            assert_equal(&verify(&[scene.lake().to_str().unwrap()]), template);
        }
    }
}

#[test]
fn a_crop_keeps_its_file_name_across_runs() {
    let scene = Scene::new();
    let template = "crop={crop_type}/batches.ndjson";
    scene.add("t1", 1, 1, "\"tomato\"");
    scene.sync();
    scene.run(template, &[]);
    scene.add("t2", 1, 2, "\"Tomato\"");
    scene.sync();
    scene.run(template, &[]);
    let names = |scene: &Scene| -> Vec<String> {
        let names = files(&scene.lake()).into_keys();
        names
            .filter(|name| name.to_lowercase().contains("tomato"))
            .collect()
    };
    let both = names(&scene);
    assert_eq!(both.len(), 2, "{both:?}");
    assert!(both[0].starts_with("crop=Tomato"), "{both:?}");
    // The crop with the plain name is removed; the other keeps its name.
    scene.nursery.state().items.remove("t1");
    scene.add("t3", 1, 3, "\"Tomato\"");
    scene.sync();
    scene.run(template, &[]);
    assert_eq!(names(&scene), both[..1]);
    let text = fs::read_to_string(scene.lake().join(&both[0])).unwrap();
    assert_eq!(text.lines().count(), 2, "{text}");
    assert_equal(&verify(&[scene.lake().to_str().unwrap()]), "crops");
}

#[test]
fn a_file_of_an_export_from_the_service_is_removed_with_its_last_batch() {
    let scene = Scene::new();
    let output = scene.lake().join(MONTHS);
    let args = ["export", "-o", output.to_str().unwrap(), "--manifest"];
    let mut command = trayscan(&args);
    command.service(&scene.nursery);
    command.output().expect(0);
    for id in ["b11", "b12", "b13"] {
        scene.nursery.state().items.remove(id).unwrap();
    }
    scene.sync();
    scene.run(MONTHS, &[]);
    let after: Vec<String> = files(&scene.lake()).into_keys().collect();
    assert!(
        !after.contains(&MONTHS.replace("{year}", "2026").replace("{month}", "01")),
        "{after:?}"
    );
    assert_equal(&verify(&[scene.lake().to_str().unwrap()]), "moved");
}

#[test]
fn only_files_of_the_template_are_removed() {
    let scene = Scene::new();
    scene.run(MONTHS, &[]);
    let precious = scene.folder.path().join("precious.csv");
    fs::write(&precious, "a").unwrap();
    let manifest = scene.lake().join("_manifest.json");
    let mut listed: Value = serde_json::from_str(&fs::read_to_string(&manifest).unwrap()).unwrap();
    let folder = scene.lake().to_str().unwrap().to_owned();
    let mut entry = listed["files"][0].clone();
    entry["path"] = json!(format!("{folder}/../precious.csv"));
    listed["files"].as_array_mut().unwrap().push(entry);
    fs::write(&manifest, listed.to_string()).unwrap();
    let pending = json!({"template": "other/{day}.csv", "files": [precious.to_str().unwrap()]});
    let pending_list = scene.lake().join("_manifest.json.pending");
    fs::write(pending_list, pending.to_string()).unwrap();
    scene.run(MONTHS, &[]);
    assert!(precious.exists());
}

#[test]
fn a_file_modified_after_the_manifest_is_rewritten() {
    let scene = Scene::new();
    scene.run(MONTHS, &[]);
    let path = scene.lake().join("year=2026/month=01/batches.ndjson");
    let text = fs::read(&path).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(20));
    // The same size, but other content.
    fs::write(&path, vec![b' '; text.len()]).unwrap();
    scene.run(MONTHS, &[]);
    assert_eq!(fs::read(&path).unwrap(), text);
}

#[test]
fn only_one_run_at_a_time_writes_a_lake() {
    let scene = Scene::new();
    scene.run(MONTHS, &[]);
    let folder = fs::File::open(scene.lake()).unwrap();
    folder.lock().unwrap();
    let ended = scene.command(MONTHS, &[]).output().expect(11);
    assert!(
        ended.stderr.contains("another run is writing the lake"),
        "{ended:?}"
    );
    folder.unlock().unwrap();
    scene.run(MONTHS, &[]);
}

mod thorough {
    use super::*;

    #[test]
    #[ignore = "slow"]
    fn the_lake_equals_a_full_export_after_any_history() {
        let seed = std::env::var("TRAYSCAN_TEST_SEED").ok();
        let seed = seed.map_or_else(|| fastrand::u64(..), |seed| seed.parse().unwrap());
        eprintln!("TRAYSCAN_TEST_SEED={seed}");
        let mut chance = fastrand::Rng::with_seed(seed);
        let crops = ["null", "\"Leek\"", "\"Basil\"", "\"a/b\"", "\"\""];
        for (template, args) in [
            ("{crop_type}.ndjson", &[][..]),
            (
                "y={year}/crop={crop_type}/{month}.ndjson",
                &["--where", "avg_germination_rate>50"],
            ),
            (
                "{month}/{day}.csv",
                &["--start", "2026-02", "--end", "2026-11"],
            ),
        ] {
            let scene = Scene::new();
            scene.run(template, args);
            for round in 0..6 {
                // The lake is not updated after every sync.
                for _ in 0..chance.usize(1..3) {
                    for _ in 0..chance.usize(0..4) {
                        let id = format!("b{}", chance.usize(0..30));
                        let (month, day) = (chance.u32(1..=12), chance.u32(1..=28));
                        let crop = crops[chance.usize(..crops.len())];
                        let has = scene.nursery.state().items.contains_key(&id);
                        match chance.usize(..4) {
                            0 if has => drop(scene.nursery.state().items.remove(&id)),
                            1 if has => {
                                let rate = format!("\"{}.00\"", chance.u32(40..60));
                                scene
                                    .nursery
                                    .state()
                                    .edit(&id, "avg_germination_rate", &rate);
                            }
                            2 if has => scene.nursery.state().edit(&id, "extra", "[1]"),
                            _ => scene.add(&id, month, day, crop),
                        }
                    }
                    scene.sync();
                }
                scene.run(template, args);
                scene.assert_equals_full_export(
                    template,
                    args,
                    &format!("{template}, round {round}"),
                );
            }
        }
    }
}
