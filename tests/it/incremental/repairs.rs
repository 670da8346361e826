//! Lakes of killed runs, and lakes with missing or damaged files.

use std::fs;

use super::{MONTHS, Scene, inodes, rewritten};
use crate::harness::trayscan;
use crate::kills::{Moment, killed, strace_kills};
use crate::verify::{assert_equal, verify};

#[test]
fn the_next_run_repairs_a_killed_run_with_other_settings() {
    if !strace_kills() {
        return;
    }
    let scene = Scene::new();
    let renames = "rename,renameat,renameat2";
    // A Parquet file contains its creation time: same size, different bytes.
    let parquet = "{month}.parquet";
    scene.run(parquet, &[]);
    fs::remove_file(scene.lake().join("02.parquet")).unwrap();
    assert!(killed(
        &scene.command(parquet, &[]),
        &Moment::Call(renames, 3)
    ));
    scene.run(parquet, &[]);
    assert_equal(&verify(&[scene.lake().to_str().unwrap()]), "parquet");
    fs::remove_dir_all(scene.lake()).unwrap();
    // Columns in another order, and batches that the filter of the lake excludes.
    scene.add("z", 9, 1, "\"Zucchini\"");
    scene.sync();
    let template = "{month}.csv";
    let args = [
        "--fields",
        "batch_id,crop_type",
        "--where",
        "crop_type!=Zucchini",
    ];
    let other = ["--fields", "crop_type,batch_id"];
    scene.run(template, &args);
    let killed_at = |nth| {
        killed(
            &scene.command(template, &other),
            &Moment::Call(renames, nth),
        )
    };
    for nth in [1, 2, 4, 6, 7] {
        assert!(killed_at(nth), "{nth}");
        scene.run(template, &args);
        scene.assert_equals_full_export(template, &args, &format!("killed at {nth}"));
    }
    // A run that was killed before the first manifest.
    fs::remove_dir_all(scene.lake()).unwrap();
    assert!(killed_at(4));
    scene.nursery.state().items.remove("z");
    scene.sync();
    scene.run(template, &args);
    scene.assert_equals_full_export(template, &args, "the first run");
}

#[test]
fn missing_or_truncated_files_are_rewritten() {
    let scene = Scene::new();
    scene.run(MONTHS, &[]);
    let file = |month: u32| {
        let name = format!("year=2026/month={month:02}/batches.ndjson");
        scene.lake().join(name)
    };
    fs::remove_dir_all(file(1).parent().unwrap()).unwrap();
    fs::write(file(2), "{}").unwrap();
    let before = inodes(&scene.lake());
    let ended = scene.run(MONTHS, &[]);
    assert!(ended.stderr.contains("2 files rewritten"), "{ended:?}");
    let changed = rewritten(&before, &inodes(&scene.lake()));
    assert_eq!(changed.len(), 3, "{changed:?}");
    scene.assert_equals_full_export(MONTHS, &[], "repaired");
    // Without a manifest, it is unknown which files belong to the lake.
    fs::create_dir(scene.lake().join("year=2019")).unwrap();
    fs::create_dir(scene.lake().join("year=2019/month=01")).unwrap();
    let stray = scene.lake().join("year=2019/month=01/batches.ndjson");
    fs::copy(file(1), &stray).unwrap();
    fs::remove_file(scene.lake().join("_manifest.json")).unwrap();
    for _ in 0..2 {
        let ended = scene.run(MONTHS, &[]);
        assert!(
            ended
                .stderr
                .contains("1 file is in the lake but not in its manifest"),
            "{ended:?}"
        );
    }
    fs::remove_dir_all(scene.lake().join("year=2019")).unwrap();
    // With a relative path, and moved as a whole.
    fs::rename(scene.lake(), scene.folder.path().join("moved")).unwrap();
    let archive = scene.shelf.path.to_str().unwrap();
    let template = format!("moved/{MONTHS}");
    let args = [
        "export",
        "--archive",
        archive,
        "--only-changed",
        "-o",
        &template,
    ];
    let mut command = trayscan(&args);
    command.current_dir(scene.folder.path());
    let ended = command.output();
    assert!(ended.stderr.contains("nothing has changed"), "{ended:?}");
}

mod thorough {
    use super::*;

    #[test]
    #[ignore = "slow"]
    fn the_next_run_repairs_a_killed_run() {
        if !strace_kills() {
            return;
        }
        let scene = Scene::new();
        let args = ["--success-marker"];
        scene.run(MONTHS, &args);
        let mut kills = 0;
        for (round, call) in ["rename,renameat,renameat2", "unlink,unlinkat", "fsync"]
            .into_iter()
            .enumerate()
        {
            for nth in [1, 2, 3, 4, 6, 9] {
                // Three files change, one is removed and one is added. In the next round, vice versa.
                for month in 1..=3 {
                    let id = format!("b{month}1");
                    let comment = format!("\"{round} {nth}\"");
                    scene.nursery.state().edit(&id, "comment", &comment);
                }
                for (id, month) in [("x", 8), ("y", 9)] {
                    if scene.nursery.state().items.remove(id).is_none() {
                        scene.add(id, month, 1, "null");
                    }
                }
                scene.sync();
                let was_killed = killed(&scene.command(MONTHS, &args), &Moment::Call(call, nth));
                kills += u32::from(was_killed);
                if nth % 2 == 0 {
                    // Batches added by the killed run may be gone before the next one.
                    scene.nursery.state().items.remove("x");
                    scene.nursery.state().items.remove("y");
                    scene.sync();
                }
                scene.run(MONTHS, &args);
                let what = format!("{call} {nth}, killed: {was_killed}");
                assert!(scene.lake().join("_SUCCESS").exists(), "{what}");
                fs::remove_file(scene.lake().join("_SUCCESS")).unwrap();
                scene.assert_equals_full_export(MONTHS, &[], &what);
                scene.run(MONTHS, &args);
            }
        }
        assert!(kills > 8, "{kills}");
    }
}
