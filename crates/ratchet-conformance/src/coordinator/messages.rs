//! Messages that are no hints are refused, loudly, and harm nothing.

use ratchet_coordinator::{ENVELOPE_CHARS_MAX, Envelope};
use ratchet_core::Priority;
use uuid::Uuid;

use super::cluster::{Cluster, new_id};

fn envelope() -> String {
    let hint = ratchet_core::Hint { origin: new_id(), priority: Priority::High };
    Envelope { hub: Uuid::new_v4(), hint }.encode()
}

/// A hint with a field that this version does not know.
fn padded(padding: &str) -> String {
    envelope().replace(r#"{"v""#, &format!(r#"{{"padding":"{padding}","v""#))
}

/// Every one of these is counted and told to nobody, and what follows arrives.
async fn are_rejected(cluster: Cluster, texts: &[String]) {
    let ((a, _), (b, ear)) = (cluster.node().await, cluster.node().await);
    let good = envelope();
    cluster.transport().inject(&good).await;
    b.counts("an injected hint", |stats| (stats.received, stats.rejected) == (1, 0)).await;
    for text in texts {
        cluster.transport().inject(text).await;
    }
    let count = texts.len() as u64;
    b.counts("the count of rejected messages", |stats| stats.rejected == count).await;
    let hint = a.speaks();
    ear.hears(&hint).await;
    assert_eq!(ear.heard(), [Envelope::decode(&good).unwrap().hint, hint]);
    assert_eq!((b.stats().received, b.stats().rejected), (2, count));
}

pub(super) async fn an_unknown_version_is_rejected_and_counted(cluster: Cluster) {
    let newer = envelope().replace(r#""v":1"#, r#""v":2"#);
    are_rejected(cluster, &[newer, r#"{"v":99}"#.to_owned()]).await;
}

pub(super) async fn an_unreadable_message_is_rejected_and_counted(cluster: Cluster) {
    let cut = envelope();
    let cut = cut[..cut.len() / 2].to_owned();
    are_rejected(cluster, &["not a hint".to_owned(), cut, "{}".to_owned()]).await;
}

pub(super) async fn a_message_that_is_too_long_is_rejected_and_counted(cluster: Cluster) {
    // One character longer than any hint. A transport that carries no such message needs no one to reject it.
    if cluster.transport().message_bytes_max() <= ENVELOPE_CHARS_MAX {
        return;
    }
    let room = ENVELOPE_CHARS_MAX - padded("").chars().count();
    are_rejected(cluster, &[padded(&"x".repeat(room + 1))]).await;
}
