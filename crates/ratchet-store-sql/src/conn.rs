use std::sync::Arc;

use async_trait::async_trait;
use ratchet_core::StoreError;

use crate::list;
use crate::row::Row;
use crate::stmt::{Stmt, Texts};
use crate::value::Value;

/// A connection, in a transaction or not: text and values in, rows out.
///
/// The only thing that a driver implements. A store's own transaction and a caller's connection are both one, so the
/// same function serves both.
#[async_trait]
pub trait Conn: Send {
    /// The statements in this connection's dialect.
    fn texts(&self) -> &Texts;

    /// Runs a statement and says how many rows it changed; `doing` is for the error.
    async fn execute(&mut self, doing: &'static str, text: Arc<str>, values: Vec<Value>) -> Result<u64, StoreError>;

    /// Runs a statement and returns its rows; `doing` is for the error.
    async fn fetch(&mut self, doing: &'static str, text: Arc<str>, values: Vec<Value>) -> Result<Vec<Row>, StoreError>;
}

impl dyn Conn + '_ {
    /// Runs a statement without a list.
    pub(crate) async fn run(&mut self, stmt: &Stmt, values: Vec<Value>) -> Result<u64, StoreError> {
        let text = self.texts().render(stmt, 1);
        self.execute(stmt.doing(), text, values).await
    }

    /// Reads with a statement without a list.
    pub(crate) async fn rows(&mut self, stmt: &Stmt, values: Vec<Value>) -> Result<Vec<Row>, StoreError> {
        let text = self.texts().render(stmt, 1);
        self.fetch(stmt.doing(), text, values).await
    }

    /// Reads with a statement without a list that has at most one row.
    pub(crate) async fn row(&mut self, stmt: &Stmt, values: Vec<Value>) -> Result<Option<Row>, StoreError> {
        Ok(self.rows(stmt, values).await?.into_iter().next())
    }

    /// Runs a statement once for all `items`, or a few times if they are many; `bind` adds the values of one item.
    ///
    /// Says how many rows were changed in all.
    pub(crate) async fn run_each<T: Sync>(
        &mut self,
        stmt: &Stmt,
        items: &[T],
        bind: impl Fn(&T, &mut Vec<Value>) + Send,
    ) -> Result<u64, StoreError> {
        let mut changed = 0;
        let mut rest = items;
        while !rest.is_empty() {
            let (chunk, after) = rest.split_at(list::chunk_size(rest.len()));
            let mut values = Vec::new();
            for item in chunk {
                bind(item, &mut values);
            }
            let text = self.texts().render(stmt, chunk.len());
            changed += self.execute(stmt.doing(), text, values).await?;
            rest = after;
        }
        Ok(changed)
    }

    /// Runs a statement that takes a list of keys after `before`.
    pub(crate) async fn run_in<K>(&mut self, stmt: &Stmt, before: &[Value], keys: &[K]) -> Result<u64, StoreError>
    where
        K: Clone + Into<Value> + Sync,
    {
        let mut changed = 0;
        for chunk in keys.chunks(list::LIST_MAX) {
            let (count, values) = list::padded(before, chunk);
            let text = self.texts().render(stmt, count);
            changed += self.execute(stmt.doing(), text, values).await?;
        }
        Ok(changed)
    }

    /// Reads with a statement that takes a list of keys after `before`.
    pub(crate) async fn rows_in<K>(&mut self, stmt: &Stmt, before: &[Value], keys: &[K]) -> Result<Vec<Row>, StoreError>
    where
        K: Clone + Into<Value> + Sync,
    {
        let mut rows = Vec::new();
        for chunk in keys.chunks(list::LIST_MAX) {
            let (count, values) = list::padded(before, chunk);
            let text = self.texts().render(stmt, count);
            let mut found = self.fetch(stmt.doing(), text, values).await?;
            if rows.is_empty() {
                rows = found;
            } else {
                rows.append(&mut found);
            }
        }
        Ok(rows)
    }
}
