//! How many requests are under way at a time: as many as were asked for, fewer where the service
//! says that it is too much for it, and slowly more again.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// So many answers for each place, one after another, earn a further one.
const PATIENCE: usize = 8;

pub(super) struct ConcurrencyLimiter {
    places: Mutex<Permits>,
    freed: Notify,
}

struct Permits {
    /// What was asked for.
    wanted: usize,
    /// What the service bears, as far as it is known.
    allowed: usize,
    taken: usize,
    /// The most that were taken at a time.
    most: usize,
    /// Answers since the number last changed.
    served: usize,
    /// How often it fell: who came before that does not make it fall again.
    falls: u64,
}

impl ConcurrencyLimiter {
    pub(super) fn new(wanted: usize) -> Self {
        Self {
            places: Mutex::new(Permits {
                wanted,
                allowed: wanted,
                taken: 0,
                most: 0,
                served: 0,
                falls: 0,
            }),
            freed: Notify::new(),
        }
    }

    fn places(&self) -> MutexGuard<'_, Permits> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many may be at work now.
    pub(super) fn allowed(&self) -> usize {
        self.places().allowed
    }

    /// Tells whether there never was more than one at a time.
    pub(super) fn was_alone(&self) -> bool {
        self.places().most <= 1
    }

    /// Waits for a place.
    pub(super) async fn enter(&self) -> Permit<'_> {
        loop {
            let freed = self.freed.notified();
            if let Some(place) = self.try_enter() {
                return place;
            }
            freed.await;
        }
    }

    fn try_enter(&self) -> Option<Permit<'_>> {
        let mut places = self.places();
        if places.taken >= places.allowed {
            return None;
        }
        places.taken += 1;
        places.most = places.most.max(places.taken);
        Some(Permit {
            crew: self,
            falls: places.falls,
        })
    }
}

/// A place among those who ask; free again when dropped.
pub(super) struct Permit<'a> {
    crew: &'a ConcurrencyLimiter,
    falls: u64,
}

impl Permit<'_> {
    /// Notes an answer.
    pub(super) fn served(self) {
        let mut places = self.crew.places();
        places.served += 1;
        if places.allowed < places.wanted && places.served >= places.allowed * PATIENCE {
            places.allowed += 1;
            places.served = 0;
            log::info!("asking {} at a time again", places.allowed);
        }
    }

    /// Notes that the service had too much to do.
    pub(super) fn turned_away(self) {
        let mut places = self.crew.places();
        if self.falls < places.falls {
            return;
        }
        places.served = 0;
        if places.allowed > 1 {
            places.falls += 1;
            places.allowed /= 2;
            log::info!("the service is busy: asking {} at a time", places.allowed);
        }
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.crew.places().taken -= 1;
        // Two, for one more may be allowed than before.
        self.crew.freed.notify_one();
        self.crew.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(crew: &ConcurrencyLimiter) -> Vec<Permit<'_>> {
        std::iter::from_fn(|| crew.try_enter()).collect()
    }

    #[test]
    fn a_busy_service_halves_the_crew_once_for_all_who_were_there() {
        let crew = ConcurrencyLimiter::new(8);
        for place in fill(&crew) {
            place.turned_away();
        }
        assert_eq!(crew.allowed(), 4);
        for place in fill(&crew) {
            place.turned_away();
        }
        assert_eq!(crew.allowed(), 2);
        for _ in 0..5 {
            fill(&crew).into_iter().for_each(Permit::turned_away);
        }
        assert_eq!(crew.allowed(), 1, "one always stays");
    }

    #[test]
    fn it_grows_again_slowly_and_not_past_what_was_asked_for() {
        let crew = ConcurrencyLimiter::new(3);
        fill(&crew).into_iter().for_each(Permit::turned_away);
        let mut answers = 0;
        while crew.allowed() < 3 {
            crew.try_enter().expect("a place").served();
            answers += 1;
        }
        assert_eq!(answers, PATIENCE + 2 * PATIENCE);
        for _ in 0..100 {
            crew.try_enter().expect("a place").served();
        }
        assert_eq!((crew.allowed(), fill(&crew).len()), (3, 3));
    }
}
