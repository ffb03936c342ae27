//! Random expressions, zones and policies, beside the oracle.

use fastrand::Rng;
use jiff::civil::DateTime;
use jiff::tz::Offset;
use jiff::{SignedDuration, Timestamp};
use ratchet_core::schedule::{Cron, CronExpression, DstGap, DstOverlap, DstPolicy, Zone};

use crate::oracle::{self, Clock, Expression};
use crate::seed::seeded;
use crate::shifts::compare;

/// A value, a range or a step.
fn item(rng: &mut Rng, first: i32, last: i32, wraps: bool) -> String {
    let (a, b) = (rng.i32(first..=last), rng.i32(first..=last));
    let (a, b) = if wraps { (a, b) } else { (a.min(b), a.max(b)) };
    let step = rng.i32(1..=last - first);
    match rng.u8(0..7) {
        0..=2 => a.to_string(),
        3 => format!("{a}-{b}"),
        4 => format!("{a}/{step}"),
        5 => format!("*/{step}"),
        _ => format!("{a}-{b}/{step}"),
    }
}

/// One to three items.
fn list(rng: &mut Rng, mut item: impl FnMut(&mut Rng) -> String) -> String {
    let count = rng.usize(1..=3);
    (0..count).map(|_| item(rng)).collect::<Vec<_>>().join(",")
}

fn day_of_month(rng: &mut Rng) -> String {
    let day = rng.u8(1..=31);
    match rng.u8(0..6) {
        0 => "L".to_owned(),
        1 => format!("L-{}", rng.u8(0..=30)),
        2 => "LW".to_owned(),
        3 => format!("L-{}W", rng.u8(0..=30)),
        4 => format!("{day}W"),
        _ => item(rng, 1, 31, true),
    }
}

fn day_of_week(rng: &mut Rng) -> String {
    let words = ["sun", "MON", "Tue", "WED", "THU", "FRI", "SAT"];
    let mut weekday = || if rng.bool() { rng.u8(1..=7).to_string() } else { words[rng.usize(..7)].to_owned() };
    let (a, b) = (weekday(), weekday());
    match rng.u8(0..6) {
        0 => "L".to_owned(),
        1 => format!("{a}L"),
        2 => format!("{a}#{}", rng.u8(1..=5)),
        3 => format!("{a}-{b}"),
        4 => a,
        _ => item(rng, 1, 7, true),
    }
}

/// Both day fields, the month and the year, in the order in which they are written.
fn date_fields(rng: &mut Rng) -> (String, String, String, String) {
    let open = if rng.bool() { "?" } else { "*" }.to_owned();
    let (of_month, of_week) = match rng.u8(0..5) {
        0 => ("*".to_owned(), open),
        1 | 2 => (list(rng, day_of_month), open),
        _ => (open, list(rng, day_of_week)),
    };
    let month = if rng.bool() { "*".to_owned() } else { list(rng, |rng| item(rng, 1, 12, true)) };
    let year =
        if rng.u8(0..3) > 0 { String::new() } else { " ".to_owned() + &list(rng, |rng| item(rng, 1970, 2199, false)) };
    (of_month, month, of_week, year)
}

#[test]
fn random_dates_are_those_of_the_oracle() {
    let (mut rng, _seed) = seeded();
    for _ in 0..50 {
        let (of_month, month, of_week, year) = date_fields(&mut rng);
        let text = format!("0 0 0 {of_month} {month} {of_week}{year}");
        let oracle = Expression::new(&text);
        let Ok(expression) = CronExpression::new(&text) else {
            // It may only be refused if no day is named: none of February's and none of any other month's.
            let start = DateTime::constant(1970, 1, 1, 0, 0, 0, 0).date();
            let mut dates = start.series(jiff::ToSpan::days(1)).take_while(|date| date.year() < 2200);
            assert_eq!(dates.find(|date| oracle.names_date(*date)), None, "{text}");
            continue;
        };
        let cron = Cron::new(expression);
        let mut date = DateTime::constant(rng.i16(1970..2195), 1, 1, 0, 0, 0, 0);
        let midnight = |date: DateTime| Offset::UTC.to_timestamp(date).unwrap();
        let mut next = cron.next_after(midnight(date) - SignedDuration::from_secs(1));
        for _ in 0..500 {
            let named = oracle.names_date(date.date());
            assert_eq!(named, next == Some(midnight(date)), "{text} on {}, next is {next:?}", date.date());
            if named {
                next = cron.next_after(midnight(date));
            }
            date = date.tomorrow().unwrap();
        }
    }
}

#[test]
fn random_schedules_around_shifts_are_those_of_the_oracle() {
    let (mut rng, _seed) = seeded();
    let names = Zone::names();
    let mut compared = 0;
    for _ in 0..60 {
        let name = &names[rng.usize(..names.len())];
        let zone = oracle::zone(name);
        let year: Timestamp = format!("{}-01-01T00:00:00Z", rng.u16(1973..2150)).parse().unwrap();
        let shifts = oracle::shifts(&zone, year, year + SignedDuration::from_hours(366 * 24));
        let shift = rng.choice(shifts).unwrap_or(year);
        let clock = Clock::around(&zone, shift);
        for _ in 0..12 {
            // Days that are named are likely, so that something fires in the few hours that are looked at.
            let (of_month, month, of_week, year) = if rng.u8(0..4) == 0 {
                date_fields(&mut rng)
            } else {
                ("*".into(), "*".into(), "?".into(), String::new())
            };
            let minute =
                if rng.bool() { rng.u8(0..60).to_string() } else { list(&mut rng, |rng| item(rng, 0, 59, true)) };
            let hour = if rng.u8(0..4) == 0 { "*".to_owned() } else { list(&mut rng, |rng| item(rng, 0, 23, true)) };
            let text = format!("0 {minute} {hour} {of_month} {month} {of_week}{year}");
            let Ok(expression) = CronExpression::new(&text) else { continue };
            let dst = DstPolicy { gap: DstGap::ALL[rng.usize(..2)], overlap: DstOverlap::ALL[rng.usize(..4)] };
            let cron = Cron::new(expression).in_zone(Zone::new(name).unwrap()).with_dst(dst);
            compared += compare(&cron, &Expression::new(&text), &clock);
        }
    }
    assert!(compared > 1_000, "{compared}");
}
