//! Orders about circuit breakers.

use async_trait::async_trait;
use ratchet_core::store::BreakerStore;
use ratchet_core::{BreakerOrder, ServiceName, StoreError};

use crate::store::{Backend, SqlStore};
use crate::submit::all_stored;
use crate::waist::conn::Conn;
use crate::waist::stmt::Stmt;
use crate::work;

pub(crate) const STATEMENTS: &[Stmt] = &[OPEN, ENTER, RESET, LET_GO, ORDERS];

#[async_trait]
impl<B: Backend> BreakerStore for SqlStore<B> {
    async fn open_breaker(&self, service: &ServiceName) -> Result<bool, StoreError> {
        let service = service.clone();
        self.write(work!([service], |conn| open(conn, &service))).await
    }

    async fn reset_breaker(&self, service: &ServiceName) -> Result<bool, StoreError> {
        let service = service.clone();
        self.write(work!([service], |conn| reset(conn, &service))).await
    }

    async fn breaker_orders(&self) -> Result<Vec<BreakerOrder>, StoreError> {
        self.read(work!([], |conn| orders(conn))).await
    }
}

const OPEN: Stmt = Stmt::shared(
    "holding a breaker open",
    "UPDATE scheduler_breaker SET held_open = /*yes*/, order_number = order_number + 1, ordered_at = /*now*/ \
     WHERE service = ? AND held_open = /*no*/",
);

/// Orders that the service's breaker is held open; `true` if it was not.
pub(crate) async fn open(conn: &mut dyn Conn, service: &ServiceName) -> Result<bool, StoreError> {
    // A second time, for a reset that was entered meanwhile.
    Ok(run(conn, &OPEN, service).await? || enter(conn, service, true).await? || run(conn, &OPEN, service).await?)
}

const RESET: Stmt = Stmt::shared(
    "resetting a breaker",
    "UPDATE scheduler_breaker SET order_number = order_number + 1, ordered_at = /*now*/ WHERE service = ?",
);

const LET_GO: Stmt = Stmt::shared(
    "letting go of a breaker that is held open",
    "UPDATE scheduler_breaker SET held_open = /*no*/ WHERE service = ? AND held_open = /*yes*/",
);

/// Orders that the service's breaker is reset; `true` if it was held open.
pub(crate) async fn reset(conn: &mut dyn Conn, service: &ServiceName) -> Result<bool, StoreError> {
    if !run(conn, &RESET, service).await? {
        if enter(conn, service, false).await? {
            return Ok(false);
        }
        // Somebody else has entered it meanwhile.
        run(conn, &RESET, service).await?;
    }
    // Nobody comes in between: the row is locked.
    run(conn, &LET_GO, service).await
}

/// Changes the row of a service; `false` if there is none to change.
async fn run(conn: &mut dyn Conn, stmt: &Stmt, service: &ServiceName) -> Result<bool, StoreError> {
    Ok(conn.run(stmt, vec![service.as_str().into()]).await? == 1)
}

const ENTER: Stmt = Stmt::shared(
    "ordering about a breaker for the first time",
    "INSERT INTO scheduler_breaker (service, held_open, order_number, ordered_at) VALUES (?, ?, 1, /*now*/) \
     /*or_nothing*/",
);

/// Enters the first order about a service; `false` if there is one.
async fn enter(conn: &mut dyn Conn, service: &ServiceName, held_open: bool) -> Result<bool, StoreError> {
    all_stored(conn.run(&ENTER, vec![service.as_str().into(), held_open.into()]).await, 1)
}

const ORDERS: Stmt = Stmt::shared(
    "reading orders about breakers",
    "SELECT service, held_open, order_number, ordered_at FROM scheduler_breaker",
);

/// The last order about each service, by name.
pub(crate) async fn orders(conn: &mut dyn Conn) -> Result<Vec<BreakerOrder>, StoreError> {
    let mut orders = Vec::new();
    for row in conn.rows(&ORDERS, vec![]).await? {
        let mut fields = row.fields();
        orders.push(BreakerOrder {
            service: ServiceName::from_store(fields.text("service")?),
            held_open: fields.bool("held_open")?,
            number: fields.number("order_number")?,
            ordered_at: fields.time("ordered_at")?,
        });
    }
    // Here and not in the database, whose order is that of some language.
    orders.sort_unstable_by(|one, other| one.service.cmp(&other.service));
    Ok(orders)
}
