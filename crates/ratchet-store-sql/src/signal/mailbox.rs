//! The row of a signal's key: where delivering and beginning to wait meet, and where a signal is kept for a job to come.

use std::collections::{BTreeSet, HashMap};

use jiff::Timestamp;
use ratchet_core::signal::{Delivery, is_kept};
use ratchet_core::store::Swept;
use ratchet_core::{DeliveryId, ErrorKind, JsonText, Principal, Signal, SignalDecision, SignalKey, StoreError};

use crate::cluster::database_time;
use crate::waist::conn::Conn;
use crate::waist::row::Fields;
use crate::waist::stmt::Stmt;
use crate::waist::value::Value;

pub(crate) const STATEMENTS: &[Stmt] =
    &[LOCK_KEYS, READ_KEPT, CLEAR_KEPT, KEEP, LOOK_AT_KEYS, LOCK_EMPTY_KEYS, DELETE_KEYS];

// An insert that finds the row there locks it all the same, and makes no new version of it.
const LOCK_KEYS: Stmt = Stmt::shared(
    "locking the keys of signals",
    "INSERT INTO scheduler_signal (signal_key) /*rows:text*/ \
     ON CONFLICT (signal_key) DO UPDATE SET kept_until = NULL WHERE 1 = 0",
)
.mysql(
    "INSERT INTO scheduler_signal (signal_key) VALUES /*each*/(?)/*end*/ \
     ON DUPLICATE KEY UPDATE signal_key = VALUES(signal_key)",
);

// A locking read: in a caller's transaction on MySQL no other sees what was committed since it began.
const READ_KEPT: Stmt = Stmt::shared(
    "reading signals that are kept",
    "SELECT signal_key, /*columns:signal*/, kept_until \
     FROM scheduler_signal WHERE signal_key /*any*/ ORDER BY signal_key /*for_update*/",
);

/// Locks the keys, in their order, until the transaction ends, and reads what is kept for them.
pub(crate) async fn lock(
    conn: &mut dyn Conn,
    keys: impl Iterator<Item = &SignalKey> + Send,
    now: Timestamp,
) -> Result<HashMap<SignalKey, Signal>, StoreError> {
    let keys: BTreeSet<&str> = keys.map(SignalKey::as_str).collect();
    let keys: Vec<&str> = keys.into_iter().collect();
    conn.run_each(&LOCK_KEYS, &keys, |key, values| values.push((*key).into())).await?;
    let mut kept = HashMap::new();
    for row in conn.rows_in(&READ_KEPT, &[], &keys).await? {
        let mut fields = row.fields();
        let key = fields.parsed("signal_key", SignalKey::new)?;
        let signal = signal_of(&mut fields, &key)?;
        let until = fields.opt_time("kept_until")?;
        if let (Some(signal), true) = (signal, until.is_some_and(|until| is_kept(until, now))) {
            kept.insert(key, signal);
        }
    }
    Ok(kept)
}

/// The signal in the columns from `payload` to `delivery_id`, if one is there.
pub(crate) fn signal_of(fields: &mut Fields<'_>, key: &SignalKey) -> Result<Option<Signal>, StoreError> {
    let payload = fields.opt_text("payload")?.map(JsonText::from_store);
    let outcome = fields.opt_text("outcome")?;
    let reason = fields.opt_text("rejection_reason")?;
    let by = fields.opt_text("delivered_by")?.map(Principal::from_store);
    let at = fields.opt_time("delivered_at")?;
    let delivery_id = fields.opt_id("delivery_id")?.map(DeliveryId);
    let (Some(payload), Some(at), Some(delivery_id)) = (payload, at, delivery_id) else { return Ok(None) };
    let decision = outcome.map(|outcome| {
        SignalDecision::from_parts(outcome, reason).ok_or_else(|| {
            let problem = format!("the outcome of the signal {key:?} is {outcome}, which this version does not know");
            StoreError::new(ErrorKind::Invalid, "reading a signal", problem)
        })
    });
    Ok(Some(Signal { key: key.clone(), payload, decision: decision.transpose()?, by, at, delivery_id }))
}

/// A signal as the columns from `payload` to `delivery_id` hold it.
pub(crate) type Columns = [Value; 6];

/// The columns while no signal has come.
pub(crate) const EMPTY: Columns =
    [Value::Json(None), Value::Text(None), Value::Text(None), Value::Text(None), Value::Time(None), Value::Id(None)];

/// The columns of a signal that has come.
pub(crate) fn columns_of(signal: &Signal) -> Columns {
    let Signal { key: _, payload, decision, by, at, delivery_id } = signal;
    columns(payload, decision.as_ref(), by.as_ref(), *at, *delivery_id)
}

/// The columns of a signal that is delivered `now`.
pub(crate) fn columns_of_delivery(delivery: &Delivery, now: Timestamp) -> Columns {
    columns(&delivery.payload, delivery.decision.as_ref(), delivery.by.as_ref(), now, delivery.id)
}

fn columns(
    payload: &JsonText,
    decision: Option<&SignalDecision>,
    by: Option<&Principal>,
    at: Timestamp,
    id: DeliveryId,
) -> Columns {
    [
        payload.into(),
        Value::opt_text(decision.map(SignalDecision::as_str)),
        Value::opt_text(decision.and_then(SignalDecision::reason)),
        Value::opt_text(by.map(AsRef::as_ref)),
        at.into(),
        Value::Id(Some(id.0)),
    ]
}

const CLEAR_KEPT: Stmt = Stmt::shared(
    "taking signals that were kept",
    "UPDATE scheduler_signal SET /*clear:signal*/, kept_until = NULL WHERE signal_key /*any*/",
);

/// Forgets signals that were taken.
pub(crate) async fn clear(conn: &mut dyn Conn, keys: &[&str]) -> Result<(), StoreError> {
    conn.run_in(&CLEAR_KEPT, &[], keys).await?;
    Ok(())
}

const KEEP: Stmt =
    Stmt::shared("keeping a signal", "UPDATE scheduler_signal SET /*set:signal*/, kept_until = ? WHERE signal_key = ?");

/// Keeps a signal under its key, which is locked.
pub(crate) async fn keep(
    conn: &mut dyn Conn,
    key: &SignalKey,
    delivery: &Delivery,
    now: Timestamp,
    until: Timestamp,
) -> Result<(), StoreError> {
    let mut values = columns_of_delivery(delivery, now).to_vec();
    values.extend([until.into(), key.as_str().into()]);
    conn.run(&KEEP, values).await?;
    Ok(())
}

const LOOK_AT_KEYS: Stmt = Stmt::shared(
    "looking for keys of signals",
    "SELECT signal_key FROM scheduler_signal WHERE signal_key > ? ORDER BY signal_key LIMIT ?",
);

const LOCK_EMPTY_KEYS: Stmt = Stmt::shared(
    "looking for keys of signals that nothing is kept for",
    "SELECT signal_key FROM scheduler_signal WHERE (kept_until IS NULL OR kept_until <= ?) AND signal_key /*any*/ \
     ORDER BY signal_key /*skip_locked*/",
);

const DELETE_KEYS: Stmt =
    Stmt::shared("forgetting keys of signals", "DELETE FROM scheduler_signal WHERE signal_key /*any*/");

/// Forgets those of up to `limit` keys after `after` for which nothing is kept.
///
/// It walks along the keys, so that a call costs the same however many signals are kept. A key that somebody has locked is
/// in use and stays.
pub(crate) async fn sweep(conn: &mut dyn Conn, after: Option<&SignalKey>, limit: usize) -> Result<Swept, StoreError> {
    // No key is empty.
    let after = after.map_or("", SignalKey::as_str);
    let rows = conn.rows(&LOOK_AT_KEYS, vec![after.into(), Value::count(limit)]).await?;
    let keys = rows.iter().map(|row| row.fields().text("signal_key")).collect::<Result<Vec<&str>, _>>()?;
    let next = keys.get(limit.saturating_sub(1)).map(SignalKey::new).transpose().map_err(|refused| {
        StoreError::new(ErrorKind::Invalid, LOOK_AT_KEYS.doing(), "a stored key is out of bounds").with_source(refused)
    })?;
    let now = database_time(conn).await?;
    let rows = conn.rows_in(&LOCK_EMPTY_KEYS, &[now.into()], &keys).await?;
    let empty = rows.iter().map(|row| row.fields().text("signal_key")).collect::<Result<Vec<&str>, _>>()?;
    let removed = conn.run_in(&DELETE_KEYS, &[], &empty).await?;
    Ok(Swept { removed, next })
}
