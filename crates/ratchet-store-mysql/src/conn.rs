//! The narrow waist of `ratchet-store-sql` over sqlx.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use ratchet_core::StoreError;
use ratchet_store_sql::{CellError, Cells, Conn, Counters, Row, StoreContext, Value};
use sqlx::mysql::{MySqlArguments, MySqlRow};
use sqlx::types::chrono::{DateTime, NaiveDateTime};
use sqlx::{Arguments as _, AssertSqlSafe, Column as _, Executor as _, MySqlConnection, Row as _};
use uuid::Uuid;

use crate::error::store_error;

/// A connection for the length of a few statements.
pub(crate) struct Session<'a> {
    pub(crate) conn: &'a mut MySqlConnection,
    pub(crate) context: &'a StoreContext,
    pub(crate) counters: &'a Counters,
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
            self.conn.execute(sqlx::query_with(AssertSqlSafe(text), arguments)).await
        };
        Ok(result.map_err(|error| store_error(doing, error))?.rows_affected())
    }

    async fn fetch(&mut self, doing: &'static str, text: Arc<str>, values: Vec<Value>) -> Result<Vec<Row>, StoreError> {
        self.counters.count_statement();
        let rows = if values.is_empty() {
            self.conn.fetch_all(sqlx::raw_sql(AssertSqlSafe(text))).await
        } else {
            let arguments = arguments(values).map_err(|error| store_error(doing, sqlx::Error::Encode(error)))?;
            self.conn.fetch_all(sqlx::query_with(AssertSqlSafe(text), arguments)).await
        };
        let rows = rows.map_err(|error| store_error(doing, error))?;
        Ok(rows.into_iter().map(|row| Row::new(MysqlCells(row))).collect())
    }
}

fn arguments(values: Vec<Value>) -> Result<MySqlArguments, sqlx::error::BoxDynError> {
    let mut arguments = MySqlArguments::default();
    arguments.reserve(values.len(), 0);
    for value in values {
        match value {
            Value::Int(int) => arguments.add(int)?,
            Value::Real(real) => arguments.add(real)?,
            Value::Bool(bool) => arguments.add(bool)?,
            Value::Text(text) | Value::Json(text) => arguments.add(text.as_deref())?,
            Value::Id(id) => arguments.add(id.as_ref().map(|id| id.as_bytes().as_slice()))?,
            Value::Time(time) => arguments.add(time.map(date_time).transpose()?)?,
            Value::List(_) => return Err("MySQL has no arrays".into()),
        }
    }
    Ok(arguments)
}

fn date_time(time: Timestamp) -> Result<NaiveDateTime, sqlx::error::BoxDynError> {
    let time = DateTime::from_timestamp_micros(time.as_microsecond()).ok_or("a time is out of range")?;
    Ok(time.naive_utc())
}

struct MysqlCells(MySqlRow);

impl Cells for MysqlCells {
    fn name(&self, index: usize) -> &str {
        self.0.columns().get(index).map_or("", |column| column.name())
    }

    fn int(&self, index: usize) -> Result<Option<i64>, CellError> {
        Ok(self.0.try_get_unchecked(index)?)
    }

    fn real(&self, index: usize) -> Result<Option<f64>, CellError> {
        Ok(self.0.try_get_unchecked(index)?)
    }

    fn bool(&self, index: usize) -> Result<Option<bool>, CellError> {
        Ok(self.int(index)?.map(|int| int != 0))
    }

    fn text(&self, index: usize) -> Result<Option<&str>, CellError> {
        Ok(self.0.try_get_unchecked(index)?)
    }

    fn id(&self, index: usize) -> Result<Option<Uuid>, CellError> {
        let bytes: Option<&[u8]> = self.0.try_get_unchecked(index)?;
        Ok(bytes.map(Uuid::from_slice).transpose()?)
    }

    fn time(&self, index: usize) -> Result<Option<Timestamp>, CellError> {
        let time: Option<NaiveDateTime> = self.0.try_get_unchecked(index)?;
        Ok(time.map(|time| Timestamp::from_microsecond(time.and_utc().timestamp_micros())).transpose()?)
    }
}
