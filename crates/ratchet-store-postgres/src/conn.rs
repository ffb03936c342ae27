//! The narrow waist of `ratchet-store-sql` over sqlx.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use ratchet_core::StoreError;
use ratchet_store_sql::{CellError, Cells, Conn, Counters, Row, StoreContext, Value};
use sqlx::postgres::{PgArguments, PgRow};
use sqlx::{
    Arguments as _, AssertSqlSafe, Column as _, Connection as _, Executor as _, PgConnection, Row as _, ValueRef as _,
};
use uuid::Uuid;

use crate::error::{is_stale_plan, store_error};
use crate::param::{EPOCH_US, Param};

/// A connection for the length of a few statements.
pub(crate) struct Session<'a> {
    pub(crate) conn: &'a mut PgConnection,
    pub(crate) context: &'a StoreContext,
    pub(crate) counters: &'a Counters,
    /// Whether prepared statements may be kept for the next time.
    pub(crate) prepares: bool,
    /// Whether it is a caller's own.
    pub(crate) callers: bool,
}

#[async_trait]
impl Conn for Session<'_> {
    fn context(&self) -> &StoreContext {
        self.context
    }

    fn is_callers(&self) -> bool {
        self.callers
    }

    async fn execute(&mut self, doing: &'static str, text: Arc<str>, values: Vec<Value>) -> Result<u64, StoreError> {
        let result = if values.is_empty() {
            self.conn.execute(sqlx::raw_sql(AssertSqlSafe(text))).await
        } else {
            self.counters.count_statement();
            let arguments = arguments(values).map_err(|error| store_error(doing, sqlx::Error::Encode(error)))?;
            let query = sqlx::query_with(AssertSqlSafe(text), arguments).persistent(self.prepares);
            self.conn.execute(query).await
        };
        match result {
            Ok(done) => Ok(done.rows_affected()),
            Err(error) => Err(self.failed(doing, error).await),
        }
    }

    async fn fetch(&mut self, doing: &'static str, text: Arc<str>, values: Vec<Value>) -> Result<Vec<Row>, StoreError> {
        self.counters.count_statement();
        let arguments = arguments(values).map_err(|error| store_error(doing, sqlx::Error::Encode(error)))?;
        let query = sqlx::query_with(AssertSqlSafe(text), arguments).persistent(self.prepares);
        match self.conn.fetch_all(query).await {
            Ok(rows) => Ok(rows.into_iter().map(|row| Row::new(PgCells(row))).collect()),
            Err(error) => Err(self.failed(doing, error).await),
        }
    }
}

impl Session<'_> {
    /// Forgets what was prepared before the schema was changed: it would be refused again whenever it is tried.
    async fn failed(&mut self, doing: &'static str, error: sqlx::Error) -> StoreError {
        if is_stale_plan(&error) {
            // If this fails the connection is gone, and the statements with it.
            let _ = self.conn.clear_cached_statements().await;
        }
        store_error(doing, error)
    }
}

fn arguments(values: Vec<Value>) -> Result<PgArguments, sqlx::error::BoxDynError> {
    let mut arguments = PgArguments::default();
    arguments.reserve(values.len(), 0);
    for value in values {
        arguments.add(Param(value))?;
    }
    Ok(arguments)
}

/// A row in the binary format; statements without values are never fetched from.
struct PgCells(PgRow);

impl PgCells {
    fn bytes(&self, index: usize) -> Result<Option<&[u8]>, CellError> {
        let value = self.0.try_get_raw(index)?;
        if value.is_null() { Ok(None) } else { Ok(Some(value.as_bytes()?)) }
    }

    fn fixed<const N: usize>(&self, index: usize) -> Result<Option<[u8; N]>, CellError> {
        Ok(self.bytes(index)?.map(<[u8; N]>::try_from).transpose()?)
    }
}

impl Cells for PgCells {
    fn name(&self, index: usize) -> &str {
        self.0.columns().get(index).map_or("", |column| column.name())
    }

    fn int(&self, index: usize) -> Result<Option<i64>, CellError> {
        Ok(match self.bytes(index)? {
            None => None,
            Some(bytes @ [_, _]) => Some(i16::from_be_bytes(bytes.try_into()?).into()),
            Some(bytes @ [_, _, _, _]) => Some(i32::from_be_bytes(bytes.try_into()?).into()),
            Some(bytes) => Some(i64::from_be_bytes(bytes.try_into()?)),
        })
    }

    fn real(&self, index: usize) -> Result<Option<f64>, CellError> {
        Ok(self.fixed(index)?.map(f64::from_be_bytes))
    }

    fn bool(&self, index: usize) -> Result<Option<bool>, CellError> {
        Ok(self.fixed::<1>(index)?.map(|[byte]| byte != 0))
    }

    fn text(&self, index: usize) -> Result<Option<&str>, CellError> {
        let value = self.0.try_get_raw(index)?;
        if value.is_null() {
            return Ok(None);
        }
        let is_jsonb = value.type_info().oid().is_some_and(|oid| oid.0 == 3_802);
        let bytes = value.as_bytes()?;
        // The version of the format comes first.
        let bytes = if is_jsonb { bytes.get(1..).unwrap_or_default() } else { bytes };
        Ok(Some(std::str::from_utf8(bytes)?))
    }

    fn id(&self, index: usize) -> Result<Option<Uuid>, CellError> {
        Ok(self.fixed(index)?.map(Uuid::from_bytes))
    }

    fn time(&self, index: usize) -> Result<Option<Timestamp>, CellError> {
        let Some(since_2000) = self.fixed(index)?.map(i64::from_be_bytes) else { return Ok(None) };
        Ok(Some(Timestamp::from_microsecond(since_2000.saturating_add(EPOCH_US))?))
    }
}
