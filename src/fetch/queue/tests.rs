use std::net::SocketAddr;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use super::super::repeats::RepeatGuard;
use super::super::session::FetchSession;
use super::super::walk::{WalkOptions, WindowEnd};
use super::*;
use crate::batch::Page;
use crate::client::{BaseUrl, ClientOptions, Credentials, Service, Session, Version, block_on};
use crate::error::Kind;
use crate::secret::Secret;
use crate::server::{self, ExpectedCredentials, ServerOptions, faults::Faults};

fn range(start: i64) -> Range {
    Range::between(Some(start), Some(start + 1))
}

/// Returns a page of a walk, with one batch.
fn page(id: &str, walk: u64) -> DecodedPage {
    let mut decoded = DecodedPage::new(Page::for_tests());
    decoded.page.push(crate::batch::minimal(id, ""));
    decoded.page.walk = Some(WalkId {
        number: walk,
        is_window: true,
    });
    decoded.issues.flawed = 1;
    decoded
}

/// Ends a window without issues.
fn end(queue: &mut WindowQueue, number: u64) -> Option<(Range, u64)> {
    queue.end(number, Ok(Some(DataIssues::default())))
}

/// Returns a queue of windows that are all running, with the numbers from 1 on.
fn queue(windows: i64) -> WindowQueue {
    let mut queue = WindowQueue::new(1 << 20, false);
    for start in 0..windows {
        queue.push(range(start), WalkMode::Full);
    }
    for queued in &mut queue.windows {
        queued.state = WindowState::Running(None);
    }
    queue
}

/// Takes what is first: the ids of pages, and the windows that are finished.
fn take_all(queue: &mut WindowQueue) -> Vec<String> {
    let mut taken = Vec::new();
    loop {
        taken.push(match queue.take_first() {
            Ok(First::Page(page)) => page.page.batches[0].id().into_owned(),
            Ok(First::Finished(Some((fetched, issues)))) => {
                format!("{} of {}", issues.flawed, fetched.batches)
            }
            Ok(First::Finished(None)) => "discarded".to_owned(),
            Ok(First::Pending) => return taken,
            Err(failure) => format!("failed: {failure}"),
        });
    }
}

#[test]
fn pages_are_taken_in_window_order() {
    let mut queue = queue(3);
    assert_eq!(queue.len(), 3);
    queue.add_page(3, page("c1", 3));
    queue.add_page(2, page("b1", 2));
    assert_eq!(end(&mut queue, 3), Some((range(2), 1)));
    assert_eq!(end(&mut queue, 2), Some((range(1), 1)));
    assert_eq!(queue.running(), 1);
    assert!(take_all(&mut queue).is_empty(), "the first window has none");
    queue.add_page(1, page("a1", 1));
    queue.add_page(1, page("a2", 1));
    assert_eq!(take_all(&mut queue), ["a1", "a2"]);
    assert_eq!(
        queue.first_totals().map(|(first, _)| first.batches),
        Some(2)
    );
    assert_eq!(end(&mut queue, 1), Some((range(0), 2)));
    let expected = ["2 of 2", "b1", "1 of 1", "c1", "1 of 1"];
    assert_eq!(take_all(&mut queue), expected);
    assert_eq!(queue.len(), 0);
}

#[test]
fn a_walk_that_restarts_counts_from_its_start() {
    let mut queue = queue(1);
    for (id, walk) in [("a1", 1), ("a2", 1), ("a1", 2), ("a2", 2), ("a3", 2)] {
        queue.add_page(1, page(id, walk));
    }
    assert_eq!(end(&mut queue, 1), Some((range(0), 5)));
    assert_eq!(
        take_all(&mut queue).last().map(String::as_str),
        Some("3 of 3")
    );
}

#[test]
fn parts_of_a_page_count_as_one_page() {
    let mut queue = queue(1);
    let parts = [("a1", true), ("a2", true), ("a3", true), ("a4", false)];
    for (id, is_continued) in parts.into_iter().chain([("b1", false)]) {
        let mut part = page(id, 1);
        part.page.is_continued = is_continued;
        queue.add_page(1, part);
    }
    assert_eq!(take_all(&mut queue).len(), 5);
    let (fetched, _) = queue.first_totals().expect("the first window");
    assert_eq!((fetched.pages, fetched.batches), (2, 5));
}

#[test]
fn parts_of_a_window_follow_it() {
    let mut queue = queue(2);
    queue.add_page(1, page("a1", 1));
    assert_eq!(queue.end(1, Ok(None)), Some((range(0), 1)));
    assert!(queue.first_totals().is_none(), "received again");
    let parts = [(range(10), WalkMode::Full), (range(11), WalkMode::Full)];
    queue.insert_after(1, &parts);
    let windows: Vec<Range> = queue
        .windows
        .iter()
        .map(|queued| queued.fetched.window)
        .collect();
    assert_eq!(windows, [range(0), range(10), range(11), range(1)]);
    assert_eq!(queue.len(), 4);
    assert!(!queue.waits_for_first());
    assert_eq!(take_all(&mut queue), ["a1", "discarded"]);
    assert!(queue.waits_for_first(), "the first part is not started");
    queue.insert_after(77, &parts);
    assert_eq!(queue.len(), 3, "unknown windows have no parts");
}

#[test]
fn a_failure_is_reported_when_its_window_is_first() {
    let mut queue = queue(2);
    let failure = Failure::new(Kind::Protocol, "no");
    assert_eq!(queue.end(2, Err(failure)), Some((range(1), 0)));
    assert!(queue.has_failed());
    assert!(queue.failed.is_none());
    assert!(take_all(&mut queue).is_empty());
    assert!(end(&mut queue, 1).is_some());
    let taken = take_all(&mut queue);
    assert_eq!(taken.len(), 2);
    assert!(taken[1].starts_with("failed: "), "{taken:?}");
    assert_eq!(queue.failed, Some(range(1)));
    assert!(!queue.has_failed());
}

#[test]
fn steps_of_dropped_windows_are_ignored() {
    let mut queue = queue(2);
    queue.clear();
    assert_eq!((queue.len(), queue.running()), (0, 0));
    queue.add_page(1, page("a1", 1));
    assert_eq!(end(&mut queue, 2), None);
    assert!(take_all(&mut queue).is_empty());
}

#[test]
fn after_a_failure_only_the_first_window_is_started() {
    let mut queue = queue(2);
    queue.push(range(2), WalkMode::Full);
    let failure = Failure::new(Kind::Protocol, "no");
    assert!(queue.end(2, Err(failure)).is_some());
    assert!(!queue.start(|_, _, _| panic!("the third window is not needed")));
}

/// Returns whether a page above all the room has space at once.
fn has_space(queue: &WindowQueue, number: u64) -> bool {
    let room = Arc::clone(&queue.room);
    let window_room = WindowRoom { room, number };
    let space = pin!(window_room.acquire(2 << 20));
    let mut context = Context::from_waker(Waker::noop());
    space.poll(&mut context).is_ready()
}

#[test]
fn the_window_that_is_first_has_space() {
    let mut queue = queue(2);
    assert!(has_space(&queue, 1) && !has_space(&queue, 2));
    assert!(end(&mut queue, 1).is_some());
    assert!(!has_space(&queue, 2), "the end is not taken yet");
    assert_eq!(take_all(&mut queue), ["0 of 0"]);
    assert!(has_space(&queue, 2));
    queue.clear();
    queue.push(range(2), WalkMode::Full);
    assert!(has_space(&queue, 3) && !has_space(&queue, 2));
}

/// Returns a walk over two pages of the embedded server.
fn walk(room: WindowRoom) -> Walk {
    let listener = server::listen(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let secret = "secret-of-the-queue";
    let options = ServerOptions {
        credentials: ExpectedCredentials {
            client_id: "me".to_owned(),
            client_secret: secret.to_owned(),
        },
        faults: Faults::default(),
        seed: 1,
        page_size: 10,
        token_ttl: Duration::from_secs(900),
        v1_limit: None,
    };
    let catalog = server::generate(1, 15, false);
    tokio::spawn(server::run(
        listener,
        catalog,
        options,
        std::future::pending(),
    ));
    let credentials = Credentials {
        base_url: BaseUrl::parse(&url, false).expect("a URL"),
        client_id: "me".to_owned(),
        client_secret: Secret::new(secret),
    };
    let options = ClientOptions::for_tests();
    let service = Service::new(credentials, &options).expect("a client");
    let client = Session::new(Arc::new(service), 1);
    let options = WalkOptions {
        session: Arc::new(FetchSession::new(client, false)),
        range: Range::default(),
        version: Version::V2,
        may_be_missing: false,
        is_ordered: false,
        repeat_guard: Arc::new(RepeatGuard::new()),
    };
    Walk::new(options, Range::default(), WalkMode::Full, room)
}

#[test]
fn each_window_is_walked_by_a_task_until_its_end() {
    block_on(async {
        let mut queue = WindowQueue::new(1 << 20, false);
        queue.push(range(0), WalkMode::Full);
        queue.push(range(1), WalkMode::Full);
        let mut windows = Vec::new();
        let is_started = [(); 3].map(|()| {
            queue.start(|window, _, room| {
                windows.push(window);
                walk(room)
            })
        });
        assert_eq!(is_started, [true, true, false]);
        assert_eq!(windows, [range(0), range(1)]);
        assert_eq!(queue.running(), 2);
        while queue.running() > 0 {
            let (number, step) = queue.next_step().await;
            match step {
                WalkStep::Page(page) => {
                    assert!(page.space.is_some());
                    queue.add_page(number, page);
                }
                WalkStep::End(WindowEnd::Done(issues)) => {
                    assert!(queue.end(number, Ok(Some(issues))).is_some());
                }
                WalkStep::End(_) => panic!("window {number} failed"),
            }
        }
        while queue.tasks.join_next().await.is_some() {}
        assert!(queue.try_step().is_none(), "nothing follows the end");
        let taken = take_all(&mut queue);
        assert_eq!(taken.len(), 6, "two pages and an end each: {taken:?}");
        assert_eq!(queue.len(), 0);
    });
}

#[test]
fn a_lazy_window_is_walked_only_while_the_caller_waits() {
    block_on(async {
        let mut queue = WindowQueue::new(0, true);
        queue.push(range(0), WalkMode::Lazy);
        assert!(queue.start(|_, _, room| walk(room)));
        assert!(queue.tasks.is_empty());
        let (number, step) = queue.next_step().await;
        assert_eq!(number, 1);
        assert!(matches!(step, WalkStep::Page(_)), "without any room");
    });
}

#[test]
fn steps_that_have_arrived_are_returned_at_once() {
    let mut queue = queue(1);
    assert!(queue.try_step().is_none());
    let end = WalkStep::End(WindowEnd::Done(DataIssues::default()));
    assert!(queue.steps.0.try_send((1, end)).is_ok());
    assert!(matches!(queue.try_step(), Some((1, WalkStep::End(_)))));
    assert!(queue.try_step().is_none());
}

#[test]
#[should_panic(expected = "a bug in a walk")]
fn a_panic_in_a_walk_is_passed_on() {
    block_on(async {
        let mut queue = queue(1);
        queue.tasks.spawn(async { panic!("a bug in a walk") });
        queue.next_step().await;
    });
}
