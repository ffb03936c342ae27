//! The targets of measurements: a floor that is owed, and a goal.

use ratchet_bench::metrics::Sample;

pub(crate) struct Target {
    /// What is judged.
    pub(crate) measured: f64,
    pub(crate) floor: f64,
    pub(crate) goal: f64,
    better: Better,
}

#[derive(Clone, Copy)]
enum Better {
    More,
    Less,
}

impl Target {
    fn at_least(measured: f64, floor: f64, goal: f64) -> Self {
        Self { measured, floor, goal, better: Better::More }
    }

    fn at_most(measured: f64, floor: f64, goal: f64) -> Self {
        Self { measured, floor, goal, better: Better::Less }
    }

    pub(crate) fn verdict(&self) -> &'static str {
        let reaches = |bound: f64| match self.better {
            Better::More => self.measured >= bound,
            Better::Less => self.measured <= bound,
        };
        if reaches(self.goal) {
            "goal met"
        } else if reaches(self.floor) {
            "floor met"
        } else {
            "MISSED"
        }
    }
}

/// The target of a measure, if it has one on this database.
pub(crate) fn of(site: &str, sample: &Sample) -> Option<Target> {
    let (server, ratio, value) = (site != "sqlite", sample.ratio, sample.value);
    Some(match sample.name {
        "submit_1" if server => Target::at_least(ratio, 0.6, 0.8),
        "submit_64" if server => Target::at_least(ratio, 1.0, 2.0),
        "submit_bulk" if server => Target::at_least(ratio, 0.5, 0.8),
        "drain" if server => Target::at_least(ratio, 0.4, 0.7),
        "end_to_end" if server => Target::at_least(ratio, 0.35, 0.6),
        "drain" | "end_to_end" => Target::at_least(ratio, 0.4, 0.6),
        "idle_p50" => {
            let (submit, claim) = sample.extra("raw_submit").zip(sample.extra("raw_claim"))?;
            Target::at_most(value, submit + 3.0 * claim, submit + 2.0 * claim)
        }
        "remote_p50" if site == "postgres" => Target::at_most(value, 5_000.0, 3_000.0),
        "remote_p99" if site == "postgres" => Target::at_most(value, 25_000.0, 10_000.0),
        "claim_times_backlog" => Target::at_most(value, 2.0, 1.3),
        "claim_times_kinds" => Target::at_most(value, 4.0, 2.0),
        _ => return None,
    })
}
