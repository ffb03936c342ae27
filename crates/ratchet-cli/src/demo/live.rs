//! What the demo shows while it runs: bars on a terminal, lines elsewhere.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::IsTerminal;
use std::io::Write as _;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use ratchet::{Client, EventStream, JobEvent, JobEventKind, JobId};

use crate::counts::counted;

/// How often a line is printed where there is no terminal.
const LINE_EVERY: Duration = Duration::from_millis(500);

pub(super) struct Live {
    events: EventStream,
    kinds: BTreeMap<String, Kind>,
    running: HashSet<JobId>,
    retrying: HashMap<JobId, String>,
    view: View,
}

/// What is known of a kind's jobs.
#[derive(Default)]
struct Kind {
    jobs: u64,
    ended: u64,
    retries: u64,
    dead: u64,
    bar: Option<ProgressBar>,
}

enum View {
    Bars(MultiProgress),
    Lines { next: Instant },
    Nothing,
}

impl Live {
    pub(super) fn start(client: &Client, quiet: bool) -> Self {
        let view = if quiet {
            View::Nothing
        } else if std::io::stderr().is_terminal() && std::io::stdout().is_terminal() {
            View::Bars(MultiProgress::new())
        } else {
            View::Lines { next: Instant::now() }
        };
        Self {
            events: client.events(),
            kinds: BTreeMap::new(),
            running: HashSet::new(),
            retrying: HashMap::new(),
            view,
        }
    }

    /// How many jobs of each kind there are.
    pub(super) fn expect(&mut self, jobs_by_kind: &BTreeMap<&'static str, u64>) {
        for (kind, jobs) in jobs_by_kind {
            self.kind(kind).jobs = *jobs;
            self.redraw(kind);
        }
    }

    /// Waits for the next event and draws it.
    pub(super) async fn next(&mut self) {
        match self.events.next().await {
            Some(event) => self.draw(&event),
            None => std::future::pending().await,
        }
    }

    pub(super) fn finish(&mut self) {
        for kind in self.kinds.values() {
            if let Some(bar) = &kind.bar {
                bar.abandon();
            }
        }
        if let View::Bars(_) = self.view {
            // The last bar does not end its line.
            eprintln!();
        }
        self.line();
    }

    fn draw(&mut self, event: &JobEvent) {
        let (id, name) = (event.job_id, event.kind.as_str());
        // Started is all that is told of a callback's birth.
        let counted = self.kinds.get(name).map_or(0, |kind| kind.jobs);
        match &event.what {
            JobEventKind::Started { .. } => {
                self.running.insert(id);
                self.retrying.remove(&id);
            }
            JobEventKind::Completed { .. } => self.ended(id, name),
            JobEventKind::Retrying { .. } => {
                self.running.remove(&id);
                self.retrying.insert(id, name.to_owned());
                self.kind(name).retries += 1;
            }
            JobEventKind::DeadLettered { error, .. } => {
                self.ended(id, name);
                self.kind(name).dead += 1;
                self.tell(&format!("{name} {id} is a dead letter:\n    {error}"));
            }
            JobEventKind::TimedOut { timeout } => self.tell(&format!("{name} {id} timed out after {timeout:?}")),
            JobEventKind::Canceled { .. } => {
                self.ended(id, name);
                self.tell(&format!("{name} {id} was canceled"));
            }
            _ => {}
        }
        let kind = self.kind(name);
        kind.jobs = kind.jobs.max(counted).max(kind.ended);
        self.redraw(name);
        if let View::Lines { next } = self.view
            && next <= Instant::now()
        {
            self.line();
        }
    }

    fn ended(&mut self, id: JobId, name: &str) {
        self.running.remove(&id);
        self.kind(name).ended += 1;
    }

    fn kind(&mut self, name: &str) -> &mut Kind {
        if !self.kinds.contains_key(name) {
            let bar = match &self.view {
                View::Bars(bars) => Some(bars.add(new_bar(name))),
                View::Lines { .. } | View::Nothing => None,
            };
            self.kinds.insert(name.to_owned(), Kind { bar, ..Kind::default() });
        }
        self.kinds.get_mut(name).expect("it was inserted if it was missing")
    }

    fn redraw(&self, name: &str) {
        let Some(Kind { jobs, ended, retries, dead, bar: Some(bar) }) = self.kinds.get(name) else { return };
        bar.set_length(*jobs);
        bar.set_position(*ended);
        let mut words = Vec::new();
        if *retries > 0 {
            words.push(format!("{retries} retried"));
        }
        if *dead > 0 {
            words.push(format!("{dead} dead"));
        }
        bar.set_message(words.join(", "));
    }

    /// A line for something out of the ordinary.
    fn tell(&self, text: &str) {
        match &self.view {
            // The terminal may have gone away; the demo goes on.
            View::Bars(bars) => drop(bars.println(text)),
            View::Lines { .. } => say(text),
            View::Nothing => {}
        }
    }

    /// A line that says how far everything is.
    fn line(&mut self) {
        let View::Lines { next } = &mut self.view else { return };
        *next = Instant::now() + LINE_EVERY;
        let sum = |of: fn(&Kind) -> u64| self.kinds.values().map(of).sum::<u64>();
        say(&format!(
            "{:>4}/{} ended, {} running, {} waiting to be retried, {}",
            sum(|kind| kind.ended),
            sum(|kind| kind.jobs),
            self.running.len(),
            self.retrying.len(),
            counted(sum(|kind| kind.dead), "dead letter", "dead letters"),
        ));
    }
}

fn new_bar(name: &str) -> ProgressBar {
    let style = ProgressStyle::with_template("{prefix:<15} {bar:28} {pos:>3}/{len:<3} {msg}")
        .expect("the template is a constant")
        .progress_chars("━╸ ");
    ProgressBar::new(0).with_style(style).with_prefix(name.to_owned())
}

/// Prints a line; who reads it may have gone away, and the demo goes on.
fn say(text: &str) {
    let _ = writeln!(std::io::stdout(), "{text}");
}
