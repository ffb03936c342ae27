//! The fires around changes of the clock, beside the oracle.

use std::collections::HashSet;

use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use ratchet_core::schedule::{
    Cron, CronExpression, DstGap, DstOverlap, DstPolicy, MisfirePolicy, Schedule, Zone, due_fires,
};

use crate::oracle::{self, Clock, Expression};

/// Appointments and rhythms, at the hours at which clocks are changed.
const EXPRESSIONS: &[&str] = &[
    "0 30 2 * * ?",
    "0 0 0 * * ?",
    "0 0 3 * * ?",
    "0 15 1 * * ?",
    "0 59 23 * * ?",
    "0 20 0-3 * * ?",
    "0 30 */2 * * ?",
    "0 0/15 2 * * ?",
    "0 10/20 22-4 * * ?",
    "0 0 * * * ?",
    "0 40 * * * ?",
    "0 */15 * * * ?",
    "0 30 2 ? * SUN",
    "0 45 0-3 ? * 1L",
    "0 0/30 1-2 ? * SUN#2",
    "0 0 2,3 LW * ?",
    "0 30 2,23 30 * ?",
];

const POLICIES: &[DstPolicy] = &[
    DstPolicy { gap: DstGap::AtShift, overlap: DstOverlap::ByPattern },
    DstPolicy { gap: DstGap::Skip, overlap: DstOverlap::First },
    DstPolicy { gap: DstGap::AtShift, overlap: DstOverlap::Last },
    DstPolicy { gap: DstGap::Skip, overlap: DstOverlap::Both },
];

/// Zones that change their clocks in every way: by an hour, by half an hour, by two, at midnight, at a quarter to three,
/// before Ramadan, and in the south.
const ZONES: &[&str] = &[
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",
    "Antarctica/Troll",
    "Africa/Cairo",
    "Africa/Casablanca",
    "Pacific/Chatham",
    "America/Santiago",
];

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// Compares both for a time span around a shift, forwards, backwards and by count. Says how many fires were compared.
pub(crate) fn compare(cron: &Cron, expression: &Expression, clock: &Clock) -> usize {
    let expected = expression.fires(clock, cron.dst);
    // So that a schedule that does not get on is found, and not waited for.
    let most = expected.len() + 2;
    let just_before = clock.from - SignedDuration::from_secs(1);
    let forwards = std::iter::successors(cron.next_after(just_before), |fire| cron.next_after(*fire));
    let forwards: Vec<Timestamp> = forwards.take(most).take_while(|fire| *fire < clock.to).collect();
    assert_eq!(forwards, expected, "forwards, from {}: {cron:?}", clock.from);

    let backwards = std::iter::successors(cron.previous_before(clock.to), |fire| cron.previous_before(*fire));
    let mut backwards: Vec<Timestamp> = backwards.take(most).take_while(|fire| *fire >= clock.from).collect();
    backwards.reverse();
    assert_eq!(backwards, expected, "backwards, from {}: {cron:?}", clock.from);

    // From anywhere, not only from fire to fire.
    let mut anywhere = clock.from;
    while anywhere < clock.to {
        let next = expected.iter().find(|fire| **fire > anywhere);
        let previous = expected.iter().rfind(|fire| **fire < anywhere);
        assert_eq!(cron.next_after(anywhere).filter(|fire| *fire < clock.to).as_ref(), next, "{anywhere}: {cron:?}");
        assert_eq!(
            cron.previous_before(anywhere).filter(|fire| *fire >= clock.from).as_ref(),
            previous,
            "{anywhere}: {cron:?}"
        );
        anywhere += SignedDuration::from_secs(47 * 60 + 13);
    }

    let count = cron.fires_between(just_before, clock.to - SignedDuration::from_secs(1));
    assert_eq!(count, expected.len() as u64, "the count, from {}: {cron:?}", clock.from);
    if let (Some(first), Some(last)) = (expected.first(), expected.last()) {
        let due = due_fires(&Schedule::from(cron.clone()), MisfirePolicy::CatchUp { max: 5 }, *first, *last);
        assert_eq!(due.instants, expected[expected.len().saturating_sub(5)..]);
        assert_eq!(due.skipped, expected.len().saturating_sub(5) as u64);
    }
    expected.len()
}

/// Which policies are compared around a shift.
#[derive(Clone, Copy, PartialEq)]
enum Policies {
    All,
    /// One of them, another one for each expression and each pair of shifts.
    InTurn,
}

/// Compares all expressions around the shifts of a zone.
fn compare_zone(name: &str, zone: &TimeZone, shifts: &[Timestamp], policies: Policies) -> usize {
    let mut compared = 0;
    let clocks: Vec<Clock> = shifts.iter().map(|shift| Clock::around(zone, *shift)).collect();
    for (nth, text) in EXPRESSIONS.iter().enumerate() {
        let expression = Expression::new(text);
        let cron = Cron::new(CronExpression::new(text).unwrap()).in_zone(Zone::new(name).unwrap());
        for (turn, clock) in clocks.iter().enumerate() {
            for (index, dst) in POLICIES.iter().enumerate() {
                if policies == Policies::All || index == (nth + turn / 2) % POLICIES.len() {
                    compared += compare(&cron.clone().with_dst(*dst), &expression, clock);
                }
            }
        }
    }
    compared
}

#[test]
fn fires_around_ten_years_of_shifts_are_those_of_the_oracle() {
    let mut compared = 0;
    for name in ZONES {
        let zone = oracle::zone(name);
        let shifts = oracle::shifts(&zone, at("2020-01-01T00:00:00Z"), at("2030-01-01T00:00:00Z"));
        assert!(shifts.len() >= 10, "{name} has {} shifts", shifts.len());
        compared += compare_zone(name, &zone, &shifts, Policies::InTurn);
    }
    assert!(compared > 10_000, "{compared}");
}

#[test]
fn fires_around_a_day_that_was_skipped_are_those_of_the_oracle() {
    for (name, shift) in [("Pacific/Apia", "2011-12-30T09:00:00Z"), ("Pacific/Kwajalein", "1993-08-21T11:00:00Z")] {
        assert!(compare_zone(name, &oracle::zone(name), &[at(shift)], Policies::All) > 1_000);
    }
}

/// By hand: `cargo test --release -p ratchet-core --test it -- --ignored --nocapture`.
#[test]
#[ignore = "takes minutes; for changes of the rules, by hand"]
fn fires_around_all_shifts_of_all_zones_are_those_of_the_oracle() {
    // Before 1973 some clocks were not in step with whole minutes, and the oracle looks once a minute.
    let (from, to) = (at("1973-01-01T00:00:00Z"), at("2038-01-01T00:00:00Z"));
    let (mut distinct, mut shifts_seen, mut compared) = (HashSet::new(), 0, 0);
    for name in Zone::names() {
        let zone = oracle::zone(&name);
        let shifts = oracle::shifts(&zone, from, to);
        // Many names are of one zone: their clocks show the same.
        if distinct.insert((zone.to_offset(from), shifts.clone())) {
            shifts_seen += shifts.len();
            compared += compare_zone(&name, &zone, &shifts, Policies::All);
        }
    }
    println!("{} names, {} zones, {shifts_seen} shifts, {compared} fires", Zone::names().len(), distinct.len());
}
