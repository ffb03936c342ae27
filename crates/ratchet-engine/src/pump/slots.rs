//! Room for running jobs: by queue, apart for async and blocking handlers.

use std::collections::BTreeMap;
use std::sync::Arc;

use ratchet_core::claim::{ClaimRequest, Pool};
use ratchet_core::{Kind, NodeId, QueueName};

use crate::job::registry::Registry;
use crate::node::config::{Config, Slots};
use crate::pump::claim_filter::{ClaimFilter, FilteredPool};

/// Which pool a running job takes its slot from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PoolIndex(usize);

/// The most that a claim may ask for of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Most {
    /// All of its free slots.
    All,
    /// Half of its slots: while these jobs end, the next claim fills the other half.
    Half,
}

/// The slots of a node. Only the pump touches them.
#[derive(Debug)]
pub(crate) struct SlotPools {
    pools: Vec<SlotPool>,
    /// Room for the steps that Ratchet itself runs, in a queue of their own: no job of the application holds them up.
    internal: SlotPool,
    /// Says which pool is served first, and in it which service is tried first: other ones in each round, so that none can
    /// use up every claim.
    round: usize,
}

#[derive(Debug)]
struct SlotPool {
    queue: QueueName,
    /// Whether its handlers block a thread.
    blocking: bool,
    kinds: Arc<[Kind]>,
    slots: usize,
    taken: usize,
    /// Whether the last claim has filled it.
    is_loaded: bool,
}

/// The queue of the steps that Ratchet itself runs.
pub(crate) const INTERNAL_QUEUE: &str = "ratchet";
const INTERNAL_SLOTS: usize = 10;
const INTERNAL: PoolIndex = PoolIndex(usize::MAX);

impl SlotPools {
    /// A pool for each queue and sort of handler. A node serves the queues that it was told to, and those that its
    /// kinds name; every kind may come in every queue.
    pub(crate) fn new(registry: &Registry, configured: &BTreeMap<QueueName, Slots>) -> Self {
        let mut queues: BTreeMap<QueueName, Slots> =
            registry.own().map(|(_, entry)| (entry.queue.clone(), Slots::default())).collect();
        queues.extend(configured.iter().map(|(queue, slots)| (queue.clone(), *slots)));
        let kinds = |blocking: bool| -> Arc<[Kind]> {
            registry.own().filter(|(_, entry)| entry.blocking == blocking).map(|(kind, _)| kind.clone()).collect()
        };
        let (tasks, threads) = (kinds(false), kinds(true));
        let mut pools = Vec::new();
        for (queue, slots) in queues {
            for (blocking, kinds, slots) in [(false, &tasks, slots.tasks), (true, &threads, slots.threads)] {
                if !kinds.is_empty() && slots > 0 {
                    pools.push(SlotPool {
                        queue: queue.clone(),
                        blocking,
                        kinds: kinds.clone(),
                        slots,
                        taken: 0,
                        is_loaded: false,
                    });
                }
            }
        }
        let internal = SlotPool {
            queue: QueueName::new(INTERNAL_QUEUE).expect("it is a good name"),
            blocking: false,
            kinds: registry.internal().map(|(kind, _)| kind.clone()).collect(),
            slots: INTERNAL_SLOTS,
            taken: 0,
            is_loaded: false,
        };
        Self { pools, internal, round: 0 }
    }

    pub(crate) fn queues(&self) -> impl Iterator<Item = &QueueName> {
        self.pools.iter().map(|pool| &pool.queue)
    }

    pub(super) fn free(&self) -> usize {
        self.pools.iter().map(|pool| pool.free_after(0)).sum()
    }

    /// Whether there is room for the steps that Ratchet itself runs.
    pub(super) fn has_internal_room(&self) -> bool {
        self.internal.taken < self.internal.slots
    }

    pub(crate) fn total(&self) -> usize {
        self.pools.iter().map(|pool| pool.slots).sum()
    }

    /// Slots that hold a job: one that runs, or one whose end is not written yet.
    pub(super) fn taken(&self) -> usize {
        self.pools.iter().chain([&self.internal]).map(|pool| pool.taken).sum()
    }

    /// What others can read of the pools: queue, whether its handlers block, slots.
    pub(crate) fn info(&self) -> impl Iterator<Item = (&QueueName, bool, usize)> {
        self.pools.iter().map(|pool| (&pool.queue, pool.blocking, pool.slots))
    }

    /// Slots that hold a job, of each pool in the order of [`info`](Self::info).
    pub(super) fn taken_by_pool(&self) -> impl Iterator<Item = usize> + Clone {
        self.pools.iter().map(|pool| pool.taken)
    }

    #[expect(clippy::cast_precision_loss, reason = "a share of some thousands")]
    pub(super) fn utilization(&self) -> f64 {
        let total = self.total().max(1);
        (total - self.free()) as f64 / total as f64
    }

    /// Lets others be served first. A round has to hold a claim that tries services, or some pools never would.
    pub(super) fn next_round(&mut self) {
        self.round = self.round.wrapping_add(1);
    }

    /// Returns the room to claim for, once the slots in `freed` are given back as well.
    ///
    /// The steps that Ratchet itself runs are asked for only if `internal` is set, because every kind more costs every claim.
    #[expect(clippy::too_many_arguments, reason = "it is called in one place")]
    pub(super) fn request(
        &self,
        freed: impl IntoIterator<Item = PoolIndex>,
        node: NodeId,
        config: &Config,
        probation: bool,
        internal: bool,
        most: Most,
        filter: &mut ClaimFilter<'_>,
    ) -> ClaimRequest {
        let mut freed_here = vec![0; self.pools.len()];
        let mut freed_internal = 0;
        for pool in freed {
            let of_pool = if pool == INTERNAL { &mut freed_internal } else { &mut freed_here[pool.0] };
            *of_pool += 1;
        }
        let count = self.pools.len().max(1);
        let mut room: Vec<_> = self.pools.iter().zip(freed_here).collect();
        room.rotate_left(self.round % count);
        room.extend(internal.then_some((&self.internal, freed_internal)));
        let mut pools = Vec::with_capacity(room.len());
        for (pool, freed) in room {
            let free = match most {
                Most::All => pool.free_after(freed),
                Most::Half => pool.free_after(freed).min(pool.half()),
            };
            if free > 0 {
                pools.extend(pool.filtered(free, self.round / count, filter));
            }
        }
        let limit = config.claim_max.min(pools.iter().map(|pool| pool.free).sum());
        ClaimRequest { node, pools, limit, probation, boost: config.boost }
    }

    /// Takes a slot for a claimed job; `None` if it belongs to no pool, which a store never hands out.
    pub(super) fn take(&mut self, queue: &QueueName, kind: &Kind) -> Option<PoolIndex> {
        if self.internal.queue == *queue && self.internal.kinds.contains(kind) {
            self.internal.taken += 1;
            return Some(INTERNAL);
        }
        let at = self.pools.iter().position(|pool| pool.queue == *queue && pool.kinds.contains(kind))?;
        self.pools[at].taken += 1;
        Some(PoolIndex(at))
    }

    /// Notes which pools a claim has filled: `started` are the pools of its jobs, and `was_full` says whether it got all that it
    /// asked for.
    pub(super) fn note_load(&mut self, started: &[PoolIndex], was_full: bool) {
        let mut by_pool = vec![0; self.pools.len()];
        for pool in started.iter().filter(|pool| **pool != INTERNAL) {
            by_pool[pool.0] += 1;
        }
        for (pool, started) in self.pools.iter_mut().zip(by_pool) {
            pool.is_loaded = started > 0 && (was_full || pool.free_after(0) == 0 || started >= pool.half());
        }
    }

    /// The slots of the pools that the last claim has filled.
    pub(super) fn loaded(&self) -> usize {
        self.pools.iter().filter(|pool| pool.is_loaded).map(|pool| pool.slots).sum()
    }

    /// Whether a pool that the last claim has filled has room again.
    pub(super) fn has_loaded_room(&self) -> bool {
        self.pools.iter().any(|pool| pool.is_loaded && pool.free_after(0) > 0)
    }

    pub(super) fn give_back(&mut self, pool: PoolIndex) {
        let pool = self.pool(pool);
        debug_assert!(pool.taken > 0, "a slot is given back once");
        pool.taken = pool.taken.saturating_sub(1);
    }

    fn pool(&mut self, index: PoolIndex) -> &mut SlotPool {
        if index == INTERNAL { &mut self.internal } else { &mut self.pools[index.0] }
    }
}

impl SlotPool {
    fn half(&self) -> usize {
        self.slots.div_ceil(2)
    }

    /// Returns the number of free slots, once some are given back as well.
    fn free_after(&self, freed: usize) -> usize {
        self.slots.saturating_sub(self.taken.saturating_sub(freed))
    }

    /// The free slots, shared among the kinds that may be claimed now: those that are tried have some of their own.
    fn filtered(&self, mut free: usize, round: usize, filter: &mut ClaimFilter<'_>) -> Vec<Pool> {
        let FilteredPool { kinds, trials } = filter.apply(&self.kinds, free, round);
        let mut pools = Vec::with_capacity(1 + trials.len());
        for (kinds, room) in trials {
            free -= room;
            pools.push(Pool { queue: self.queue.clone(), kinds, free: room });
        }
        if free > 0 && !kinds.is_empty() {
            pools.push(Pool { queue: self.queue.clone(), kinds, free });
        }
        pools
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use ratchet_core::breaker::{BreakerConfig, CallEnd};

    use super::*;
    use crate::job::inject::StateMap;
    use crate::job::registry::Registration;
    use crate::observe::metrics::Meter;
    use crate::protect::resilience::{CircuitBreakers, Guarded, ResilienceStrategy};

    #[derive(serde::Serialize, serde::Deserialize)]
    struct Nothing;

    impl crate::Job for Nothing {
        const KIND: &'static str = "nothing";
        type Output = ();
        async fn run(self, _ctx: crate::JobContext) -> Result<(), crate::Failure> {
            Ok(())
        }
    }

    #[test]
    fn a_pool_is_loaded_when_a_claim_has_filled_it_or_half_of_it() {
        let registry = Registry::build(vec![Registration::of::<Nothing>()], &StateMap::default()).unwrap();
        let configured = [(QueueName::default(), Slots { tasks: 10, threads: 10 })].into();
        let kind = Kind::new("nothing").unwrap();
        let check = |before: usize, started: usize, was_full, expected| {
            let mut slots = SlotPools::new(&registry, &configured);
            let mut take = |count| (0..count).map(|_| slots.take(&QueueName::default(), &kind).unwrap()).collect();
            let (_, started): (Vec<_>, Vec<_>) = (take(before), take(started));
            slots.note_load(&started, was_full);
            assert_eq!(slots.loaded(), expected, "{before} and {started:?}");
            assert_eq!(slots.has_loaded_room(), expected > 0 && before + started.len() < 10);
        };
        check(0, 5, false, 10);
        check(0, 4, false, 0);
        check(0, 4, true, 10);
        check(7, 3, false, 10);
        check(10, 0, true, 0);
    }

    #[test]
    fn every_queue_is_served_first_in_its_turn() {
        let registry = Registry::build(vec![Registration::of::<Nothing>()], &StateMap::default()).unwrap();
        let queues = ["a", "b"].map(|queue| (QueueName::new(queue).unwrap(), Slots::from(300)));
        let mut slots = SlotPools::new(&registry, &queues.into());
        let config = Config::default();
        let node = crate::new_node_id();
        let admit = Guarded::new(Arc::new(crate::AlwaysAdmit), Meter::default());
        let mut first = || {
            slots.next_round();
            let mut filter = ClaimFilter::new(&registry, &admit, true);
            slots.request([], node, &config, false, false, Most::All, &mut filter).pools[0].queue.to_string()
        };
        let mut firsts = [first(), first(), first()];
        firsts.sort();
        assert_eq!(firsts, ["a", "b", "default"]);
    }

    #[test]
    fn a_request_counts_slots_that_are_about_to_be_free() {
        let registry = Registry::build(vec![Registration::of::<Nothing>()], &StateMap::default()).unwrap();
        let queues = ["a", "default"].map(|queue| (QueueName::new(queue).unwrap(), Slots { tasks: 2, threads: 0 }));
        let mut slots = SlotPools::new(&registry, &queues.into());
        let nothing = Kind::new("nothing").unwrap();
        let taken = [0, 1].map(|_| slots.take(&QueueName::new("a").unwrap(), &nothing).unwrap());
        let internal = Kind::new(ratchet_core::batch::BATCH_KIND).unwrap();
        let step = slots.take(&QueueName::new(INTERNAL_QUEUE).unwrap(), &internal).unwrap();
        let admit = Guarded::new(Arc::new(crate::AlwaysAdmit), Meter::default());
        let free = |freed: &[PoolIndex]| -> Vec<_> {
            let mut filter = ClaimFilter::new(&registry, &admit, true);
            let freed = freed.iter().copied();
            let request =
                slots.request(freed, crate::new_node_id(), &Config::default(), false, true, Most::All, &mut filter);
            request.pools.iter().map(|pool| (pool.queue.to_string(), pool.free)).collect()
        };
        let room = |queue: &str, free| (queue.to_owned(), free);
        assert_eq!(free(&[]), [room("default", 2), room(INTERNAL_QUEUE, INTERNAL_SLOTS - 1)]);
        assert_eq!(free(&taken), [room("a", 2), room("default", 2), room(INTERNAL_QUEUE, INTERNAL_SLOTS - 1)]);
        assert_eq!(free(&[step]), [room("default", 2), room(INTERNAL_QUEUE, INTERNAL_SLOTS)]);
        assert_eq!(slots.taken(), 3, "asking changes nothing");
    }

    #[derive(serde::Serialize, serde::Deserialize)]
    struct Other;

    impl crate::Job for Other {
        const KIND: &'static str = "other";
        type Output = ();
        async fn run(self, _ctx: crate::JobContext) -> Result<(), crate::Failure> {
            Ok(())
        }
    }

    /// Kinds and room of each pool that a claim asks for, and when it is to look again.
    fn asked(breakers: &Arc<CircuitBreakers>, slots: usize, tries: bool) -> (Vec<(String, usize)>, Option<Duration>) {
        let registrations = vec![Registration::of::<Nothing>(), Registration::of::<Other>()];
        let registry = Registry::build(registrations, &StateMap::default()).unwrap();
        let configured = [(QueueName::default(), Slots { tasks: slots, threads: 0 })];
        let resilience = Guarded::new(breakers.clone(), Meter::default());
        let mut filter = ClaimFilter::new(&registry, &resilience, tries);
        let request = SlotPools::new(&registry, &configured.into()).request(
            [],
            crate::new_node_id(),
            &Config::default(),
            false,
            false,
            Most::All,
            &mut filter,
        );
        let kinds = |pool: &Pool| pool.kinds.iter().map(ToString::to_string).collect::<Vec<_>>().join("+");
        (request.pools.iter().map(|pool| (kinds(pool), pool.free)).collect(), filter.again())
    }

    /// Two kinds of one service.
    #[derive(serde::Serialize, serde::Deserialize)]
    struct Charge;

    impl crate::Job for Charge {
        const KIND: &'static str = "charge";
        type Output = ();
        fn defaults() -> crate::JobDefaults {
            crate::JobDefaults::default().service("payments")
        }
        async fn run(self, _ctx: crate::JobContext) -> Result<(), crate::Failure> {
            Ok(())
        }
    }

    #[derive(serde::Serialize, serde::Deserialize)]
    struct Refund;

    impl crate::Job for Refund {
        const KIND: &'static str = "refund";
        type Output = ();
        fn defaults() -> crate::JobDefaults {
            crate::JobDefaults::default().service("payments")
        }
        async fn run(self, _ctx: crate::JobContext) -> Result<(), crate::Failure> {
            Ok(())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn everything_that_waits_may_try_its_service_in_its_turn() {
        let breakers = Arc::new(CircuitBreakers::new(BreakerConfig::FAST));
        for service in ["payments", "other"] {
            for _ in 0..3 {
                let ticket = breakers.enter(service).unwrap();
                breakers.leave(service, ticket, CallEnd::Failed);
            }
        }
        tokio::time::advance(Duration::from_secs(10)).await;
        let resilience = Guarded::new(breakers, Meter::default());
        let registrations =
            vec![Registration::of::<Charge>(), Registration::of::<Refund>(), Registration::of::<Other>()];
        let registry = Registry::build(registrations, &StateMap::default()).unwrap();
        // So few slots that one service leaves none for the other.
        let queues =
            ["a", "b", "default"].map(|queue| (QueueName::new(queue).unwrap(), Slots { tasks: 1, threads: 0 }));
        let mut slots = SlotPools::new(&registry, &queues.into());
        let mut tried = std::collections::BTreeSet::new();
        for _ in 0..6 {
            slots.next_round();
            for tries in [true, false] {
                let mut filter = ClaimFilter::new(&registry, &resilience, tries);
                let request =
                    slots.request([], crate::new_node_id(), &Config::default(), false, false, Most::All, &mut filter);
                let room_for = |kind: &str| -> usize {
                    let asks = |pool: &&Pool| pool.kinds.iter().any(|one| one.as_str() == kind);
                    request.pools.iter().filter(asks).map(|pool| pool.free).sum()
                };
                for kind in ["charge", "refund", "other"] {
                    assert!(room_for(kind) <= if tries { BreakerConfig::FAST.trials } else { 0 }, "{request:?}");
                }
                for pool in request.pools {
                    tried.extend(pool.kinds.iter().map(|kind| (pool.queue.to_string(), kind.to_string())));
                }
            }
        }
        assert_eq!(tried.len(), 3 * 3, "every kind in every queue: {tried:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_claim_asks_for_what_is_admitted() {
        let breakers = Arc::new(CircuitBreakers::new(BreakerConfig::FAST));
        let both = ("nothing+other".to_owned(), 5);
        assert_eq!(asked(&breakers, 5, true), (vec![both.clone()], None));
        for _ in 0..3 {
            let ticket = breakers.enter("other").unwrap();
            breakers.leave("other", ticket, CallEnd::Failed);
        }
        let one = |free| ("nothing".to_owned(), free);
        assert_eq!(asked(&breakers, 5, true), (vec![one(5)], Some(Duration::from_secs(10))));
        tokio::time::advance(Duration::from_secs(10)).await;
        let trial = |free| ("other".to_owned(), free);
        assert_eq!(asked(&breakers, 5, true), (vec![trial(2), one(3)], Some(Duration::from_secs(1))));
        assert_eq!(asked(&breakers, 5, false), (vec![one(5)], Some(Duration::ZERO)));
        assert_eq!(asked(&breakers, 1, true), (vec![trial(1)], Some(Duration::from_secs(1))));
        breakers.open("other");
        breakers.open("nothing");
        assert_eq!(asked(&breakers, 5, true), (vec![], None));
        breakers.reset("other");
        breakers.reset("nothing");
        assert_eq!(asked(&breakers, 5, true), (vec![both], None));
    }
}
