//! Limits of resources.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ratchet_core::store::ResourceStore;
use ratchet_core::{Fence, NodeId, ResourceLimit, ResourceName, ResourceRecord, StoreError};

use crate::claim::permits::permits_out;
pub(crate) use crate::claim::permits::{end as release_permits, of_node as permits_of};
use crate::store::{Backend, SqlStore};
use crate::submit::all_stored;
use crate::waist::conn::Conn;
use crate::waist::stmt::Stmt;
use crate::waist::transact::Intent;
use crate::waist::value::Value;
use crate::work;

pub(crate) const STATEMENTS: &[Stmt] = &[DECLARE, SET, ENTER, REMOVE, LIMITS, ALL_IN_USE];

#[async_trait]
impl<B: Backend> ResourceStore for SqlStore<B> {
    async fn declare_resource(&self, limit: &ResourceLimit) -> Result<(), StoreError> {
        let limit = limit.clone();
        self.write(work!([limit], |conn| declare(conn, &limit))).await
    }

    async fn set_resource(&self, limit: &ResourceLimit) -> Result<(), StoreError> {
        let limit = limit.clone();
        self.write(work!([limit], |conn| set(conn, &limit))).await
    }

    async fn remove_resource(&self, name: &ResourceName) -> Result<bool, StoreError> {
        let name = name.clone();
        self.transact(Intent::Statement, work!([name], |conn| remove(conn, &name))).await
    }

    async fn resources(&self) -> Result<Vec<ResourceRecord>, StoreError> {
        self.read(work!([], |conn| resources(conn))).await
    }

    async fn permits_of(&self, node: NodeId) -> Result<Vec<Fence>, StoreError> {
        self.read(work!([], |conn| permits_of(conn, node))).await
    }

    async fn release_permits(&self, attempts: &[Fence]) -> Result<(), StoreError> {
        let attempts: Arc<[Fence]> = attempts.into();
        let release = work!([attempts], |conn| release_permits(conn, &attempts));
        self.write(release).await
    }
}

const DECLARE: Stmt = Stmt::shared(
    "declaring the limit of a resource",
    "UPDATE scheduler_resource_limit SET max_concurrent = ?, retry_delay_us = ?, updated_at = /*now*/ \
     WHERE resource_name = ? AND by_hand = /*no*/",
);

const SET: Stmt = Stmt::shared(
    "setting the limit of a resource",
    "UPDATE scheduler_resource_limit SET max_concurrent = ?, retry_delay_us = ?, by_hand = /*yes*/, \
     updated_at = /*now*/ WHERE resource_name = ?",
);

const ENTER: Stmt = Stmt::shared(
    "entering the limit of a resource",
    "INSERT INTO scheduler_resource_limit (resource_name, max_concurrent, retry_delay_us, by_hand, updated_at) \
     VALUES (?, ?, ?, ?, /*now*/) /*or_nothing*/",
);

/// Sets the limit that the code declares, unless one was set by hand.
pub(crate) async fn declare(conn: &mut dyn Conn, limit: &ResourceLimit) -> Result<(), StoreError> {
    if !enter(conn, limit, false).await? {
        change(conn, &DECLARE, limit).await?;
    }
    Ok(())
}

/// Sets a limit by hand.
pub(crate) async fn set(conn: &mut dyn Conn, limit: &ResourceLimit) -> Result<(), StoreError> {
    if !enter(conn, limit, true).await? {
        change(conn, &SET, limit).await?;
    }
    Ok(())
}

/// Enters a limit that is not there yet; `false` if it is.
async fn enter(conn: &mut dyn Conn, limit: &ResourceLimit, by_hand: bool) -> Result<bool, StoreError> {
    let values = vec![
        limit.name.as_str().into(),
        Value::count(limit.max_concurrent),
        Value::micros(limit.retry_delay),
        by_hand.into(),
    ];
    all_stored(conn.run(&ENTER, values).await, 1)
}

async fn change(conn: &mut dyn Conn, stmt: &Stmt, limit: &ResourceLimit) -> Result<(), StoreError> {
    let values = vec![Value::count(limit.max_concurrent), Value::micros(limit.retry_delay), limit.name.as_str().into()];
    conn.run(stmt, values).await?;
    Ok(())
}

const REMOVE: Stmt =
    Stmt::shared("removing the limit of a resource", "DELETE FROM scheduler_resource_limit WHERE resource_name = ?");

/// Removes a limit; `false` if there was none.
pub(crate) async fn remove(conn: &mut dyn Conn, name: &ResourceName) -> Result<bool, StoreError> {
    Ok(conn.run(&REMOVE, vec![name.as_str().into()]).await? == 1)
}

const LIMITS: Stmt = Stmt::shared(
    "reading limits of resources",
    "SELECT resource_name, max_concurrent, retry_delay_us, by_hand FROM scheduler_resource_limit",
);

const ALL_IN_USE: Stmt = Stmt::shared(
    "counting all permits",
    concat!("SELECT p.resource_name AS resource_name, COUNT(*) AS in_use", permits_out!(), "GROUP BY p.resource_name"),
);

/// Every resource that has a limit or permits that are out, by name.
pub(crate) async fn resources(conn: &mut dyn Conn) -> Result<Vec<ResourceRecord>, StoreError> {
    let mut found: BTreeMap<ResourceName, ResourceRecord> = BTreeMap::new();
    for row in conn.rows(&LIMITS, vec![]).await? {
        let mut fields = row.fields();
        let name = fields.parsed("resource_name", ResourceName::new)?;
        let limit = ResourceLimit {
            name: name.clone(),
            max_concurrent: fields.number("max_concurrent")?,
            retry_delay: Duration::from_micros(fields.number("retry_delay_us")?),
        };
        let by_hand = fields.bool("by_hand")?;
        found.insert(name.clone(), ResourceRecord { name, limit: Some(limit), by_hand, in_use: 0 });
    }
    for row in conn.rows(&ALL_IN_USE, vec![]).await? {
        let mut fields = row.fields();
        let name = fields.parsed("resource_name", ResourceName::new)?;
        let unlimited = || ResourceRecord { name: name.clone(), limit: None, by_hand: false, in_use: 0 };
        found.entry(name.clone()).or_insert_with(unlimited).in_use = fields.number("in_use")?;
    }
    Ok(found.into_values().collect())
}
