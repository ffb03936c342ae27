//! Notices when the whole process got no processor: it was stopped, or the machine was too busy.

use std::time::Duration;

use crate::record::{Deed, Record, now};

const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Less than this is what any machine does.
const STALL_MIN_US: i64 = 250_000;

/// Watches on a thread of its own until the process ends.
///
/// # Errors
/// If there is no thread to be had.
pub fn watch(record: Record) -> std::io::Result<()> {
    let look = move || {
        let mut last = now();
        loop {
            std::thread::sleep(LOOK_EVERY);
            let since = std::mem::replace(&mut last, now());
            if last - since > STALL_MIN_US {
                record.add(Deed::Stalled { since });
            }
        }
    };
    std::thread::Builder::new().name("stall-watch".to_owned()).spawn(look).map(drop)
}
