//! Jobs that a schedule fires again and again.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::clock::elapsed;
use crate::flow::{Condition, Edge, JobFlags};
use crate::id::{JobId, fire_id};
use crate::invalid::InvalidInput;
use crate::name::BusinessKey;
use crate::schedule::{MisfirePolicy, OverlapPolicy, Schedule, due_fires};
use crate::spec::{Due, JobSpec, JobType, NewJob, StartState};
use crate::transition::Place;

/// A schedule that is to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSchedule {
    /// Its id, made by the caller.
    pub id: JobId,
    /// What each fire does.
    pub spec: JobSpec,
    /// Submitted when a fired job succeeds.
    pub on_success: Option<JobSpec>,
    /// Submitted when a fired job fails for good.
    pub on_failure: Option<JobSpec>,
    /// When it fires.
    pub schedule: Schedule,
    /// What becomes of fires that are overdue.
    pub misfire: MisfirePolicy,
    /// What becomes of a fire while the last job has not ended.
    pub overlap: OverlapPolicy,
    /// At most one schedule or live job holds this key.
    pub business_key: Option<BusinessKey>,
    /// Whether the code of nodes declares it, and not a call at run time.
    pub declared: bool,
    /// When it fires first; none if never.
    pub next_fire: Option<Timestamp>,
}

impl NewSchedule {
    /// Checks what the field types cannot.
    pub fn check(&self) -> Result<(), InvalidInput> {
        self.spec.check()?;
        self.misfire.check()?;
        for (field, callback) in [("on_success", &self.on_success), ("on_failure", &self.on_failure)] {
            if let Some(callback) = callback {
                callback.check().map_err(|e| InvalidInput::new(format!("{field}.{}", e.field()), e.problem()))?;
            }
        }
        Ok(())
    }
}

/// A schedule as it is stored.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScheduleRecord {
    /// Its id.
    pub id: JobId,
    /// What each fire does.
    pub spec: JobSpec,
    /// Submitted when a fired job succeeds.
    pub on_success: Option<JobSpec>,
    /// Submitted when a fired job fails for good.
    pub on_failure: Option<JobSpec>,
    /// When it fires.
    pub schedule: Schedule,
    /// What becomes of fires that are overdue.
    pub misfire: MisfirePolicy,
    /// What becomes of a fire while the last job has not ended.
    pub overlap: OverlapPolicy,
    /// Held as long as the schedule is there.
    pub business_key: Option<BusinessKey>,
    /// Whether the code of nodes declares it.
    pub declared: bool,
    /// Whether it is suspended.
    pub paused: bool,
    /// When it fires next; none if never again.
    pub next_fire: Option<Timestamp>,
    /// The instant for which it last fired.
    pub last_fire: Option<Timestamp>,
    /// The job that it fired last.
    pub last_job: Option<JobId>,
    /// How many jobs it has fired.
    pub fired: u64,
    /// How many fires were passed over: overdue, or overlapping.
    pub skipped: u64,
    /// When it was stored.
    pub created_at: Timestamp,
    /// When it was last changed or declared.
    pub updated_at: Timestamp,
}

impl ScheduleRecord {
    /// A schedule that was just stored.
    pub fn stored(new: &NewSchedule, now: Timestamp) -> Self {
        Self {
            id: new.id,
            spec: new.spec.clone(),
            on_success: new.on_success.clone(),
            on_failure: new.on_failure.clone(),
            schedule: new.schedule.clone(),
            misfire: new.misfire,
            overlap: new.overlap,
            business_key: new.business_key.clone(),
            declared: new.declared,
            paused: false,
            next_fire: new.next_fire,
            last_fire: None,
            last_job: None,
            fired: 0,
            skipped: 0,
            created_at: now,
            updated_at: now,
        }
    }

    /// Whether this is what `new` says, apart from what time has changed.
    pub fn is_as_declared(&self, new: &NewSchedule) -> bool {
        let same = |a: &Option<JobSpec>, b: &Option<JobSpec>| match (a, b) {
            (Some(a), Some(b)) => a.means_the_same(b),
            (a, b) => a == b,
        };
        self.spec.means_the_same(&new.spec)
            && same(&self.on_success, &new.on_success)
            && same(&self.on_failure, &new.on_failure)
            && self.schedule == new.schedule
            && self.misfire == new.misfire
            && self.overlap == new.overlap
    }

    /// Whether it fires as `firing` says: it is not suspended, and did not fire for those instants since.
    pub fn may_fire(&self, firing: &Firing) -> bool {
        !self.paused && self.next_fire == Some(firing.expected)
    }

    /// When it fires next if it is changed `now` to what `new` says: other times count from now on, but what is due is due.
    pub fn next_fire_if_changed(&self, new: &NewSchedule, now: Timestamp) -> Option<Timestamp> {
        let is_due = self.next_fire.is_some_and(|next| next <= now);
        if is_due || self.schedule == new.schedule { self.next_fire } else { new.next_fire }
    }

    /// What is left of it when it is retired.
    pub const fn history(&self) -> History {
        let Self { paused, last_fire, last_job, fired, skipped, .. } = self;
        History { paused: *paused, last_fire: *last_fire, last_job: *last_job, fired: *fired, skipped: *skipped }
    }

    /// With what is left of an earlier life.
    #[must_use]
    pub fn after(self, history: History) -> Self {
        let History { paused, last_fire, last_job, fired, skipped } = history;
        Self { paused, last_fire, last_job, fired, skipped, ..self }
    }

    /// Its next `count` fires, as it stands.
    pub fn next_fires(&self, count: usize) -> Vec<Timestamp> {
        let next = |at: &Timestamp| self.schedule.next_after(*at);
        std::iter::successors(self.next_fire, next).take(count).collect()
    }

    /// The job of one fire. Its id follows from the schedule and the instant, so that it is stored once, whoever fires.
    pub fn job_at(&self, instant: Timestamp) -> NewJob {
        let mut job = NewJob::new(fire_id(self.id, instant), self.spec.clone());
        job.job_type = JobType::Recurring;
        job.due = Due::At(instant);
        job.parent = Some(self.id);
        job.on_success.clone_from(&self.on_success);
        job.on_failure.clone_from(&self.on_failure);
        job
    }

    /// What firing at `now` comes to; `None` if nothing is due.
    pub fn firing(&self, now: Timestamp) -> Option<Firing> {
        let expected = self.next_fire.filter(|next| *next <= now && !self.paused)?;
        let fires = due_fires(&self.schedule, self.misfire, expected, now);
        let jobs = fires.instants.iter().map(|instant| self.job_at(*instant)).collect();
        let last_fire = fires.instants.last().copied();
        Some(Firing { id: self.id, expected, jobs, last_fire, next: fires.next, skipped: fires.skipped })
    }
}

/// What has happened to a schedule, apart from what it is: it outlives the retirement of one that code declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
pub struct History {
    /// Whether a person has suspended it.
    pub paused: bool,
    /// The instant for which it last fired.
    pub last_fire: Option<Timestamp>,
    /// The job that it fired last.
    pub last_job: Option<JobId>,
    /// How many jobs it has fired.
    pub fired: u64,
    /// How many fires were passed over.
    pub skipped: u64,
}

/// What a schedule comes to at a certain time: jobs, and when it fires next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Firing {
    /// The schedule.
    pub id: JobId,
    /// The next fire that it had; if it has another by now, somebody was quicker and nothing happens.
    pub expected: Timestamp,
    /// The jobs of the fires that are due, in order.
    pub jobs: Vec<NewJob>,
    /// The instant of the last of them.
    pub last_fire: Option<Timestamp>,
    /// When it fires next; none if never again.
    pub next: Option<Timestamp>,
    /// Overdue fires that were passed over.
    pub skipped: u64,
}

/// Most jobs of one schedule that wait for each other.
pub(super) const QUEUED_MAX: usize = 100;

/// What is stored of a firing, by the overlap policy.
#[derive(Debug, Default, PartialEq)]
pub struct Arranged {
    /// The jobs.
    pub jobs: Vec<NewJob>,
    /// What makes them wait for each other.
    pub edges: Vec<Edge>,
    /// Fires that are passed over, in all.
    pub skipped: u64,
}

impl Arranged {
    /// Returns how the schedule goes on when this is stored.
    pub fn advance(&self, firing: &Firing) -> Advance {
        Advance {
            next_fire: firing.next,
            last_fire: firing.last_fire,
            last_job: self.jobs.last().map(|job| job.id),
            fired: self.jobs.len() as u64,
            skipped: self.skipped,
        }
    }
}

/// What a firing changes in the row of its schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Advance {
    /// When it fires next.
    pub next_fire: Option<Timestamp>,
    /// The instant for which it last fired; what is stored stays if there is none.
    pub last_fire: Option<Timestamp>,
    /// The job that it fired last; what is stored stays if there is none.
    pub last_job: Option<JobId>,
    /// How many more jobs it has fired.
    pub fired: u64,
    /// How many more fires were passed over.
    pub skipped: u64,
}

impl Advance {
    /// Makes this of a record.
    pub fn write(self, one: &mut ScheduleRecord) {
        one.next_fire = self.next_fire;
        one.last_fire = self.last_fire.or(one.last_fire);
        one.last_job = self.last_job.or(one.last_job);
        one.fired += self.fired;
        one.skipped += self.skipped;
    }
}

/// Whether a schedule may be ended `now`: if `idle_for` is given, only when nothing has declared it for that long.
pub fn may_end(updated_at: Timestamp, idle_for: Option<Duration>, now: Timestamp) -> bool {
    idle_for.is_none_or(|idle_for| elapsed(updated_at, now) >= idle_for)
}

impl Firing {
    /// Without the jobs that are stored already: in an earlier life the schedule has fired for their instants.
    #[must_use]
    pub fn without(&self, is_stored: impl Fn(JobId) -> bool) -> Self {
        let mut left = self.clone();
        left.jobs.retain(|job| !is_stored(job.id));
        left
    }
}

/// Whether a job that is canceled at this place leaves those behind it to the job before it.
///
/// A fire that waits in its schedule's queue does. Its own end lets nobody go: they would run beside what it waited for.
pub fn leaves_its_place(job_type: JobType, place: Place) -> bool {
    job_type == JobType::Recurring && place == Place::Waiting
}

/// Whether the last job of a schedule, at this place, blocks the next fire.
///
/// It does while it may still run. Canceled, it does if it [left its place](leaves_its_place) in the queue and what it waited for
/// has not ended, so that an edge to it is open.
pub const fn holds_up(place: Place, has_open_edge: bool) -> bool {
    match place {
        Place::Pending | Place::Running | Place::Waiting | Place::PausedPending => true,
        Place::Canceled => has_open_edge,
        // A job that is paused after a failure has ended.
        Place::PausedFailed | Place::Succeeded | Place::Failed => false,
    }
}

/// Applies the overlap policy to a firing, none of whose jobs is stored: `live` is the last job if it
/// [blocks](holds_up) the next; `queued` is how many wait already.
pub fn arrange(firing: &Firing, overlap: OverlapPolicy, live: Option<JobId>, queued: usize) -> Arranged {
    let mut arranged = Arranged { skipped: firing.skipped, ..Arranged::default() };
    let mut last = live;
    for job in &firing.jobs {
        let mut job = job.clone();
        match (overlap, last) {
            (OverlapPolicy::Allow, _) | (OverlapPolicy::Skip, None) => {}
            (OverlapPolicy::Skip, Some(_)) => {
                arranged.skipped += 1;
                continue;
            }
            (OverlapPolicy::Queue, Some(_)) if queued + arranged.edges.len() >= QUEUED_MAX => {
                arranged.skipped += 1;
                continue;
            }
            (OverlapPolicy::Queue, Some(before)) => {
                let order = u32::try_from(queued + arranged.edges.len()).unwrap_or(u32::MAX);
                arranged.edges.push(Edge { order, ..Edge::new(firing.id, before, job.id, Condition::Ended) });
                job.start = StartState::Waiting;
                job.waits_for = 1;
                job.workflow = Some(firing.id);
                job.flow = JobFlags::DEPENDANTS.with(JobFlags::INPUTS);
            }
            (OverlapPolicy::Queue, None) => {
                job.workflow = Some(firing.id);
                job.flow = JobFlags::DEPENDANTS;
            }
        }
        last = Some(job.id);
        arranged.jobs.push(job);
    }
    arranged
}

/// Which schedules to list; every field that is set narrows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ScheduleFilter {
    /// With this tag.
    pub tag: Option<crate::name::Tag>,
    /// With this business key.
    pub business_key: Option<BusinessKey>,
    /// Declared by code, or not.
    pub declared: Option<bool>,
}

/// Why a schedule is no more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ArchiveReason {
    /// A person canceled it.
    Canceled,
    /// No live node declares it any more.
    Retired,
}

impl ArchiveReason {
    /// Its name, in capitals.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Canceled => crate::state::JobState::Canceled.as_str(),
            Self::Retired => "RETIRED",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use uuid::Uuid;

    use super::*;
    use crate::json::JsonText;
    use crate::name::Kind;
    use crate::schedule::Every;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn every_minute(overlap: OverlapPolicy) -> ScheduleRecord {
        let schedule = Schedule::Every(Every::new(Duration::from_mins(1), at(0)).unwrap());
        let new = NewSchedule {
            id: JobId(Uuid::from_u128(7)),
            spec: JobSpec::new(Kind::new("tick").unwrap(), JsonText::null()),
            on_success: None,
            on_failure: None,
            schedule,
            misfire: MisfirePolicy::default(),
            overlap,
            business_key: None,
            declared: false,
            next_fire: Some(at(60)),
        };
        ScheduleRecord::stored(&new, at(0))
    }

    #[test]
    fn a_fire_is_a_job_whose_id_follows_from_schedule_and_instant() {
        let record = every_minute(OverlapPolicy::Allow);
        assert_eq!(record.firing(at(59)), None);
        let firing = record.firing(at(60)).unwrap();
        assert_eq!((firing.jobs.len(), firing.next, firing.skipped), (1, Some(at(120)), 0));
        assert_eq!(firing, record.firing(at(61)).unwrap(), "whoever fires, and when");
        assert_eq!((firing.jobs[0].due, firing.jobs[0].parent), (Due::At(at(60)), Some(record.id)));
        assert_ne!(record.job_at(at(60)).id, record.job_at(at(120)).id);
        let paused = ScheduleRecord { paused: true, ..record };
        assert_eq!(paused.firing(at(600)), None);
    }

    #[test]
    fn a_last_job_blocks_the_next_until_it_has_ended() {
        let check = |place, expected: [bool; 2]| {
            assert_eq!([holds_up(place, false), holds_up(place, true)], expected, "{place}");
        };
        check(Place::Pending, [true, true]);
        check(Place::Running, [true, true]);
        check(Place::Waiting, [true, true]);
        check(Place::PausedPending, [true, true]);
        check(Place::PausedFailed, [false, false]);
        check(Place::Succeeded, [false, false]);
        check(Place::Failed, [false, false]);
        check(Place::Canceled, [false, true]);
    }

    #[test]
    fn overlapping_fires_run_beside_are_passed_over_or_wait() {
        let check = |overlap, live: Option<u128>, queued, jobs, edges, skipped| {
            let firing = every_minute(overlap).firing(at(180)).unwrap();
            assert_eq!(firing.jobs.len(), 3);
            let live = live.map(|number| JobId(Uuid::from_u128(number)));
            let arranged = arrange(&firing, overlap, live, queued);
            assert_eq!((arranged.jobs.len(), arranged.edges.len(), arranged.skipped), (jobs, edges, skipped));
            let waiting = arranged.jobs.iter().filter(|job| job.start == StartState::Waiting).count();
            assert_eq!(waiting, edges, "what waits has an edge");
        };
        check(OverlapPolicy::Allow, Some(1), 0, 3, 0, 0);
        check(OverlapPolicy::Skip, Some(1), 0, 0, 0, 3);
        check(OverlapPolicy::Skip, None, 0, 1, 0, 2);
        check(OverlapPolicy::Queue, None, 0, 3, 2, 0);
        check(OverlapPolicy::Queue, Some(1), 0, 3, 3, 0);
        check(OverlapPolicy::Queue, Some(1), QUEUED_MAX - 1, 1, 1, 2);
    }
}
