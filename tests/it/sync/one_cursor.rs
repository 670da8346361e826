//! A service that knows only the cursor of the last range that was requested.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::archives::ArchiveFile;
use crate::fake::{Answer, Batch, FakeService, page, second, token};
use crate::harness::trayscan;

const COUNT: usize = 6000;
const PAGE: usize = 100;

fn serve() -> FakeService {
    let latest = AtomicUsize::new(0);
    FakeService::start(move |asked| {
        if asked.path().ends_with("/auth") {
            return token();
        }
        let cursor = asked.query("next_token");
        let (number, first) = match &cursor {
            None => (latest.fetch_add(1, Ordering::Relaxed) + 1, 0),
            Some(cursor) => {
                let (number, first) = cursor.split_once('-').unwrap();
                (number.parse().unwrap(), first.parse().unwrap())
            }
        };
        if number != latest.load(Ordering::Relaxed) {
            return Answer::error(410, "another range was requested");
        }
        let bound = |name: &str| asked.query(name).map(|date| second(&date));
        let (start, end) = (bound("start_date"), bound("end_date"));
        let created = |number: usize| 1_750_000_000 + 60 * i64::try_from(number).unwrap();
        let is_asked = |number: &usize| {
            start.is_none_or(|start| created(*number) >= start)
                && end.is_none_or(|end| created(*number) <= end)
        };
        let found: Vec<usize> = (0..COUNT).filter(is_asked).collect();
        let past = found.len().min(first + PAGE);
        let batch =
            |&number: &usize| Batch::small(&format!("b{number}")).created_at(created(number));
        let batches: Vec<Batch> = found[first..past].iter().map(batch).collect();
        let next = format!("{number}-{past}");
        Answer::ok(page(&batches, (past < found.len()).then_some(&next)))
    })
}

mod thorough {
    use super::*;

    #[test]
    #[ignore = "slow"]
    fn windows_that_exclude_each_other_are_given_up() {
        for workers in ["1", "4"] {
            let service = serve();
            let archive = ArchiveFile::new();
            let ended = archive.complete(&service, &["--parallel", workers]);
            assert_eq!(
                archive.one::<usize>("SELECT count(*) FROM batches"),
                COUNT,
                "{}",
                ended.stderr
            );
            let exported = trayscan(&["export", "-f", "ndjson", "--parallel", workers])
                .service(&service)
                .output()
                .expect(0);
            assert_eq!(exported.stdout.lines().count(), COUNT, "{workers}");
        }
    }
}
