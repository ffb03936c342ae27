//! Text is stored as the caller gave it: long, multibyte, or hard to tell apart.

use std::collections::BTreeMap;

use ratchet_core::limits;
use ratchet_core::{JobSpec, NewJob, NodeName, Principal, Settled, Tag};
use serde_json::{Value, json};

use crate::harness::{
    Harness, KIND, another_try, business_key, failure, idempotency_key, json as text, new_id, registration, spec,
    success_with, work, work_once, work_with_key,
};
use crate::submit::assert_same_spec;

const MULTIBYTE: &str = "žluťoučký κόσμος 日本語 🦀";

pub(crate) async fn multibyte_texts_come_back(harness: Harness) {
    let given = NewJob {
        business_key: Some(business_key(MULTIBYTE)),
        idempotency_key: Some(idempotency_key(MULTIBYTE)),
        ..NewJob::new(
            new_id(),
            JobSpec {
                payload: text(&json!({"text": MULTIBYTE, "escaped": "\u{1}\u{7f}\"\\"})),
                params: BTreeMap::from([(MULTIBYTE.to_owned(), MULTIBYTE.to_owned())]),
                tags: vec![Tag::new(MULTIBYTE).unwrap()],
                principal: Some(Principal::new(MULTIBYTE).unwrap()),
                ..spec(KIND)
            },
        )
    };
    let id = harness.submit(given.clone()).await;
    let job = harness.job(id).await;
    assert_same_spec(&job.spec, &given.spec);
    assert_eq!((job.business_key, job.idempotency_key), (given.business_key, given.idempotency_key));
    assert_eq!(harness.holder(MULTIBYTE).await, Some(id));
    assert_eq!(harness.first_with(MULTIBYTE).await, Some(id));
}

pub(crate) async fn texts_at_their_limits_come_back(harness: Harness) {
    let long = |chars| "🦀".repeat(chars);
    let value = long(limits::PARAM_VALUE_CHARS_MAX);
    let params = (0..limits::PARAMS_MAX).map(|n| (format!("{n:02}{}", long(62)), value.clone())).collect();
    let tags = (0..limits::TAGS_MAX).map(|n| Tag::new(format!("{n:02}{}", long(62))).unwrap()).collect();
    let key = long(limits::KEY_CHARS_MAX);
    let given = NewJob {
        business_key: Some(business_key(&key)),
        idempotency_key: Some(idempotency_key(&key)),
        ..NewJob::new(
            new_id(),
            JobSpec {
                queue: crate::harness::queue(&"q".repeat(limits::QUEUE_CHARS_MAX)),
                params,
                tags,
                principal: Some(Principal::new(long(limits::PRINCIPAL_CHARS_MAX)).unwrap()),
                ..spec(&"k".repeat(limits::KIND_CHARS_MAX))
            },
        )
    };
    given.check().expect("it is at the limits, not past them");
    let id = harness.submit(given.clone()).await;
    assert_same_spec(&harness.job(id).await.spec, &given.spec);
    assert_eq!(harness.holder(&key).await, Some(id));
    assert_eq!(harness.first_with(&key).await, Some(id));
}

pub(crate) async fn a_payload_at_its_limit_comes_back(harness: Harness) {
    let payload = json!("é".repeat((limits::PAYLOAD_BYTES_MAX - 2) / 2));
    let mut given = work();
    given.spec.payload = text(&payload);
    given.check().expect("it is at the limit, not past it");
    harness.submit(given).await;
    let claim = harness.claim_one().await;
    assert_eq!(claim.job.spec.payload.decode::<Value>().unwrap(), payload, "as claimed");
    assert_eq!(harness.job(claim.job.id).await.spec.payload.decode::<Value>().unwrap(), payload, "as found");
}

pub(crate) async fn json_comes_back_by_value(harness: Harness) {
    let values = json!([
        null, true, "", "a\"\\\n\u{1f}", 0, -1, i64::MIN, u64::MAX, 9_007_199_254_740_993_u64, 0.1, 1.5e300,
        [], {}, {"b": 1, "a": {"": [[]]}}
    ]);
    let mut given = work();
    given.spec.payload = text(&values);
    let claim = harness.running(given).await;
    assert_eq!(claim.job.spec.payload.decode::<Value>().unwrap(), values, "payload");
    assert_eq!(harness.settle(success_with(&claim, Some(text(&values)))).await, Settled::Applied);
    let result = harness.job(claim.job.id).await.result.expect("a result was stored");
    assert_eq!(result.decode::<Value>().unwrap(), values, "result");
}

pub(crate) async fn a_result_at_its_limit_comes_back(harness: Harness) {
    let value = json!("é".repeat((limits::RESULT_BYTES_MAX - 2) / 2));
    let claim = harness.running(work()).await;
    assert_eq!(harness.settle(success_with(&claim, Some(text(&value)))).await, Settled::Applied);
    assert_eq!(harness.job(claim.job.id).await.result.unwrap().decode::<Value>().unwrap(), value);
}

pub(crate) async fn a_long_multibyte_error_comes_back(harness: Harness) {
    let error = "🦀é".repeat(limits::ERROR_CHARS_MAX / 2);
    let claim = harness.running(work()).await;
    assert_eq!(harness.settle(failure(&claim, &error)).await, Settled::Applied);
    assert_eq!(harness.job(claim.job.id).await.last_error.as_deref(), Some(error.as_str()), "of a dead job");
    assert_eq!(harness.attempts(claim.job.id).await[0].error.as_deref(), Some(error.as_str()), "of its attempt");
    let claim = harness.running(work()).await;
    let mut again = another_try(&claim, std::time::Duration::ZERO);
    again.change = ratchet_core::Change::Reschedule {
        delay: std::time::Duration::ZERO,
        attempts: 1,
        error: ratchet_core::ErrorReport::new("Broken", &error),
    };
    assert_eq!(harness.settle(again).await, Settled::Applied);
    assert_eq!(harness.job(claim.job.id).await.last_error.as_deref(), Some(error.as_str()), "of a live job");
}

pub(crate) async fn keys_are_compared_exactly(harness: Harness) {
    // Databases that fold case, ignore trailing spaces or unite accents would mix these up.
    let keys = ["key", "Key", "KEY", "key ", " key", "ke\u{301}y", "k\u{e9}y", "%", "_", "ß", "ss"];
    for key in keys {
        let held = harness.submit(work_with_key(key)).await;
        let once = harness.submit(work_once(key)).await;
        assert_eq!(harness.holder(key).await, Some(held), "{key:?}");
        assert_eq!(harness.first_with(key).await, Some(once), "{key:?}");
    }
}

pub(crate) async fn a_nodes_name_and_info_come_back(harness: Harness) {
    let mut node = registration("n");
    node.name = NodeName::new("🦀".repeat(limits::NODE_NAME_CHARS_MAX)).unwrap();
    MULTIBYTE.clone_into(&mut node.info.version);
    harness.store.register(&node).await.unwrap();
    let record = harness.find_node(node.id).await.expect("the node is there");
    assert_eq!(record.name, node.name);
    assert_eq!(record.info, node.info);
}
