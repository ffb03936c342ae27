//! The narrow waist of `ratchet-store-sql` over sqlx.

use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;
use ratchet_core::StoreError;
use ratchet_store_sql::{CellError, Cells, Conn, Counters, Row, StoreContext, Value};
use sqlx::sqlite::{SqliteArguments, SqliteRow};
use sqlx::{Arguments as _, AssertSqlSafe, Column as _, Executor as _, Row as _, SqliteConnection};
use uuid::Uuid;

use crate::error::store_error;

/// A connection for the length of a few statements.
pub(crate) struct Session<'a> {
    pub(crate) conn: &'a mut SqliteConnection,
    pub(crate) context: &'a StoreContext,
    pub(crate) counters: &'a Counters,
}

#[async_trait]
impl Conn for Session<'_> {
    fn context(&self) -> &StoreContext {
        self.context
    }

    async fn execute(&mut self, doing: &'static str, text: Arc<str>, values: Vec<Value>) -> Result<u64, StoreError> {
        self.counters.count_statement();
        let arguments = arguments(values).map_err(|error| store_error(doing, sqlx::Error::Encode(error)))?;
        let query = sqlx::query_with(AssertSqlSafe(text), arguments);
        let result = self.conn.execute(query).await.map_err(|error| store_error(doing, error))?;
        Ok(result.rows_affected())
    }

    async fn fetch(&mut self, doing: &'static str, text: Arc<str>, values: Vec<Value>) -> Result<Vec<Row>, StoreError> {
        self.counters.count_statement();
        let arguments = arguments(values).map_err(|error| store_error(doing, sqlx::Error::Encode(error)))?;
        let query = sqlx::query_with(AssertSqlSafe(text), arguments);
        let rows = self.conn.fetch_all(query).await.map_err(|error| store_error(doing, error))?;
        Ok(rows.into_iter().map(|row| Row::new(SqliteCells(row))).collect())
    }
}

fn arguments(values: Vec<Value>) -> Result<SqliteArguments, sqlx::error::BoxDynError> {
    let mut arguments = SqliteArguments::default();
    arguments.reserve(values.len(), 0);
    for value in values {
        match value {
            Value::Int(int) => arguments.add(int)?,
            Value::Real(real) => arguments.add(real)?,
            Value::Bool(bool) => arguments.add(bool)?,
            Value::Text(text) | Value::Json(text) => arguments.add(text)?,
            Value::Id(id) => arguments.add(id.map(|id| id.as_bytes().to_vec()))?,
            Value::Time(time) => arguments.add(time.map(Timestamp::as_microsecond))?,
            Value::List(_) => return Err("SQLite has no arrays".into()),
        }
    }
    Ok(arguments)
}

struct SqliteCells(SqliteRow);

impl Cells for SqliteCells {
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
        Ok(self.0.try_get_unchecked(index)?)
    }

    fn text(&self, index: usize) -> Result<Option<&str>, CellError> {
        Ok(self.0.try_get_unchecked(index)?)
    }

    fn id(&self, index: usize) -> Result<Option<Uuid>, CellError> {
        let bytes: Option<&[u8]> = self.0.try_get_unchecked(index)?;
        Ok(bytes.map(Uuid::from_slice).transpose()?)
    }

    fn time(&self, index: usize) -> Result<Option<Timestamp>, CellError> {
        Ok(self.int(index)?.map(Timestamp::from_microsecond).transpose()?)
    }
}
