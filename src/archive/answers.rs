//! Which of two answers with the same batch is newer.

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use crate::batch::Page;
use crate::batch::dedup::{Arrival, Id};
use crate::batch::page::WalkId;

/// The least number of batches whose answers are remembered.
const REMEMBERED: usize = 2000;

/// When the service answered with the latest batches. Adjacent windows share a bound, and are fetched at the same
/// time: what is stored later may be older.
#[derive(Default)]
pub(super) struct LatestAnswers {
    walk: Option<WalkId>,
    answered: Option<Instant>,
    /// The batches of the last windows, and those of the windows before.
    batches: HashMap<Id, Option<Instant>>,
    before: HashMap<Id, Option<Instant>>,
    /// The batches that had different contents in this run.
    changed: HashSet<Id>,
}

impl LatestAnswers {
    /// Begins with the batches of `page`.
    pub(super) fn begin_page(&mut self, page: &Page) {
        let is_within = page.walk == self.walk && page.walk.is_some_and(|walk| walk.is_window);
        if !is_within && self.batches.len() >= REMEMBERED {
            self.before = std::mem::take(&mut self.batches);
        }
        (self.walk, self.answered) = (page.walk, page.answered);
    }

    /// Returns whether a batch of the page may be newer than what is stored.
    pub(super) fn is_news(&mut self, id: Id, arrival: Arrival) -> bool {
        let known = self.batches.get(&id).or_else(|| self.before.get(&id));
        if arrival != Arrival::New && known.is_some_and(|known| self.answered < *known) {
            return false;
        }
        self.batches.insert(id, self.answered);
        match arrival {
            Arrival::New => true,
            // It equals the first version, but another one may have been stored since.
            Arrival::Duplicate => self.changed.contains(&id),
            Arrival::Conflict => {
                self.changed.insert(id);
                true
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn page(walk: u64, answered: Instant) -> Page {
        Page {
            walk: Some(WalkId {
                number: walk,
                is_window: true,
            }),
            answered: Some(answered),
            ..Page::for_tests()
        }
    }

    fn id(number: usize) -> Id {
        (number, [0, 0, 0, 1])
    }

    #[test]
    fn the_answer_decides_what_is_newer() {
        use Arrival::{Conflict, Duplicate, New};
        let start = Instant::now();
        let later = start + Duration::from_millis(1);
        let mut answers = LatestAnswers::default();
        answers.begin_page(&page(1, later));
        assert!(answers.is_news(id(1), New));
        assert!(answers.is_news(id(2), New));
        assert!(!answers.is_news(id(2), Duplicate));
        answers.begin_page(&page(2, start));
        assert!(!answers.is_news(id(1), Conflict), "answered before");
        assert!(!answers.is_news(id(1), Duplicate));
        answers.begin_page(&page(3, later + Duration::from_millis(1)));
        assert!(answers.is_news(id(1), Conflict));
        assert!(answers.is_news(id(1), Duplicate), "the first version again");
        assert!(!answers.is_news(id(2), Duplicate));
        assert!(answers.is_news(id(3), Conflict), "answered long ago");
    }

    #[test]
    fn answers_of_two_windows_are_remembered() {
        let start = Instant::now();
        let mut answers = LatestAnswers::default();
        for walk in 0..5 {
            answers.begin_page(&page(walk, start));
            for number in 0..2 * REMEMBERED {
                assert!(answers.is_news(
                    id(usize::try_from(walk).expect("a small number") << 20 | number),
                    Arrival::New
                ));
            }
        }
        assert_eq!(answers.batches.len() + answers.before.len(), 4 * REMEMBERED);
    }
}
