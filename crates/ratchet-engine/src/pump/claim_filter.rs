//! Which kinds a claim asks for now: those whose services admit jobs.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use ratchet_core::Kind;
use ratchet_core::breaker::Admission;

use crate::job::registry::Registry;
use crate::protect::resilience::Guarded;

/// How soon a service that is being tried is asked for again.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// Narrows what one claim asks for.
pub(super) struct ClaimFilter<'a> {
    registry: &'a Registry,
    resilience: &'a Guarded,
    /// Whether this claim asks for trials: every other one does, because slots that are kept for trials are lost to others
    /// while there is nothing to try.
    tries: bool,
    /// Trials of a service that this claim asks for already, in another pool.
    asked: HashMap<Arc<str>, usize>,
    /// When something that is left out may be asked for again.
    again: Option<Duration>,
}

/// What is left of the kinds of a pool.
pub(super) struct FilteredPool {
    /// Those that may take all free slots.
    pub(super) kinds: Arc<[Kind]>,
    /// Those that try a service, which may together take so many.
    pub(super) trials: Vec<(Arc<[Kind]>, usize)>,
}

/// The kinds of a pool that call one service, and how many of its jobs may try it.
struct Trial {
    service: Arc<str>,
    most: usize,
    kinds: Vec<Kind>,
}

impl<'a> ClaimFilter<'a> {
    pub(super) fn new(registry: &'a Registry, resilience: &'a Guarded, tries: bool) -> Self {
        Self { registry, resilience, tries, asked: HashMap::new(), again: None }
    }

    /// When to look again, because something was left out.
    pub(super) fn again(&self) -> Option<Duration> {
        self.again
    }

    /// `round` is another one each time, so that where slots are few no service takes them from another for ever.
    pub(super) fn apply(&mut self, kinds: &Arc<[Kind]>, free: usize, round: usize) -> FilteredPool {
        let mut left = Vec::new();
        let mut trials: Vec<Trial> = Vec::new();
        for kind in kinds.iter() {
            let service = self.registry.get(kind).and_then(|entry| entry.service.as_ref());
            match service.map(|service| (service, self.resilience.admits(service))) {
                None | Some((_, Admission::All)) => left.push(kind.clone()),
                Some((_, Admission::None(wait))) => self.look_again(wait),
                Some((service, Admission::AtMost(most))) => {
                    self.look_again(Some(if self.tries { TRY_AGAIN } else { Duration::ZERO }));
                    // Whichever of its kinds waits may try it.
                    match trials.iter_mut().find(|trial| trial.service == *service) {
                        Some(trial) => trial.kinds.push(kind.clone()),
                        None => trials.push(Trial { service: service.clone(), most, kinds: vec![kind.clone()] }),
                    }
                }
            }
        }
        let kinds = if left.len() == kinds.len() { kinds.clone() } else { left.into() };
        FilteredPool { kinds, trials: if self.tries { self.share(trials, free, round) } else { Vec::new() } }
    }

    /// Room for each service that is tried, of what is free.
    fn share(&mut self, mut trials: Vec<Trial>, mut free: usize, round: usize) -> Vec<(Arc<[Kind]>, usize)> {
        let first = round % trials.len().max(1);
        trials.rotate_left(first);
        let mut shared = Vec::with_capacity(trials.len());
        for Trial { service, most, kinds } in trials {
            let asked = self.asked.entry(service).or_default();
            let room = most.saturating_sub(*asked).min(free);
            if room > 0 {
                *asked += room;
                free -= room;
                shared.push((kinds.into(), room));
            }
        }
        shared
    }

    fn look_again(&mut self, wait: Option<Duration>) {
        // Without a time it is somebody's word that counts, and resetting wakes the pump.
        self.again = self.again.into_iter().chain(wait).min();
    }
}
