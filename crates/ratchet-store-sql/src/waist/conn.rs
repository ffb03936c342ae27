use std::sync::Arc;

use async_trait::async_trait;
use ratchet_core::StoreError;

use crate::waist::context::StoreContext;
use crate::waist::dialect::Dialect;
use crate::waist::list;
use crate::waist::row::Row;
use crate::waist::stmt::Stmt;
use crate::waist::value::Value;

/// A connection, in a transaction or not: text and values in, rows out.
///
/// The only thing that a driver implements. A store's own transaction and a caller's connection are both one, so the
/// same function serves both.
#[async_trait]
pub trait Conn: Send {
    /// Returns what the connections of its store share.
    fn context(&self) -> &StoreContext;

    /// Whether the transaction is a caller's own, whose isolation is the caller's choice.
    fn is_callers(&self) -> bool {
        false
    }

    /// Runs a statement and says how many rows it changed; `doing` is for the error.
    async fn execute(&mut self, doing: &'static str, text: Arc<str>, values: Vec<Value>) -> Result<u64, StoreError>;

    /// Runs a statement and returns its rows; `doing` is for the error. Where texts that are prepared are planned for good, one
    /// without values is not prepared.
    async fn fetch(&mut self, doing: &'static str, text: Arc<str>, values: Vec<Value>) -> Result<Vec<Row>, StoreError>;
}

impl dyn Conn + '_ {
    pub(crate) fn dialect(&self) -> Dialect {
        self.context().dialect()
    }

    /// Runs a statement without a list.
    pub(crate) async fn run(&mut self, stmt: &Stmt, values: Vec<Value>) -> Result<u64, StoreError> {
        let text = self.context().render(stmt, 1);
        self.execute(stmt.doing(), text, values).await
    }

    /// Reads with a statement without a list.
    pub(crate) async fn rows(&mut self, stmt: &Stmt, values: Vec<Value>) -> Result<Vec<Row>, StoreError> {
        let text = self.context().render(stmt, 1);
        self.fetch(stmt.doing(), text, values).await
    }

    /// Reads with a statement without a list that is to be planned anew each time, as no other needs it.
    ///
    /// A MariaDB that has prepared a statement and then writes to its table jumps no more from group to group of an index when
    /// the statement runs again on that connection, but reads all of it. There the values are written into the text.
    pub(crate) async fn rows_of_groups(&mut self, stmt: &Stmt, values: Vec<Value>) -> Result<Vec<Row>, StoreError> {
        match self.dialect() {
            Dialect::Sqlite | Dialect::Postgres => self.rows(stmt, values).await,
            Dialect::Mysql | Dialect::Mariadb => {
                let text = self.context().inline(stmt, 1, &values);
                self.fetch(stmt.doing(), text.into(), Vec::new()).await
            }
        }
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
        while let Some((text, values)) = self.next_part(stmt, &[], &mut rest, &bind) {
            changed += self.execute(stmt.doing(), text, values).await?;
        }
        Ok(changed)
    }

    /// Reads with a statement that takes a list of items after `before`.
    pub(crate) async fn rows_each<T: Sync>(
        &mut self,
        stmt: &Stmt,
        before: &[Value],
        items: &[T],
        bind: impl Fn(&T, &mut Vec<Value>) + Send,
    ) -> Result<Vec<Row>, StoreError> {
        let mut rows = Vec::new();
        let mut rest = items;
        while let Some((text, values)) = self.next_part(stmt, before, &mut rest, &bind) {
            rows.append(&mut self.fetch(stmt.doing(), text, values).await?);
        }
        Ok(rows)
    }

    /// The text and the values for as many items as go into one statement.
    fn next_part<T>(
        &self,
        stmt: &Stmt,
        before: &[Value],
        rest: &mut &[T],
        bind: impl Fn(&T, &mut Vec<Value>),
    ) -> Option<(Arc<str>, Vec<Value>)> {
        if rest.is_empty() {
            return None;
        }
        let arrays = self.dialect().has_arrays();
        let most = if arrays { rest.len() } else { list::chunk_size(rest.len()) };
        let mut values = Vec::new();
        let (mut count, mut bytes) = (0, 0);
        for item in &rest[..most] {
            let before = values.len();
            bind(item, &mut values);
            bytes += values[before..].iter().map(Value::bytes).sum::<usize>();
            if count > 0 && bytes > list::BYTES_MAX {
                values.truncate(before);
                break;
            }
            count += 1;
        }
        if !arrays {
            let width = values.len() / count;
            count = list::chunk_size(count);
            values.truncate(count * width);
        }
        *rest = &rest[count..];
        let text = self.context().render(stmt, if arrays { 1 } else { count });
        let values = if arrays { list::columns(values, count) } else { values };
        Some((text, before.iter().cloned().chain(values).collect()))
    }

    /// Runs a statement that takes a list of keys after `before`.
    pub(crate) async fn run_in<K>(&mut self, stmt: &Stmt, before: &[Value], keys: &[K]) -> Result<u64, StoreError>
    where
        K: Clone + Into<Value> + Sync,
    {
        let mut changed = 0;
        for chunk in self.key_chunks(keys) {
            let (text, values) = self.keyed(stmt, before, chunk);
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
        for chunk in self.key_chunks(keys) {
            let (text, values) = self.keyed(stmt, before, chunk);
            let mut found = self.fetch(stmt.doing(), text, values).await?;
            if rows.is_empty() {
                rows = found;
            } else {
                rows.append(&mut found);
            }
        }
        Ok(rows)
    }

    fn key_chunks<'k, K>(&self, keys: &'k [K]) -> std::slice::Chunks<'k, K> {
        let together = if self.dialect().has_arrays() { keys.len().max(1) } else { list::LIST_MAX };
        keys.chunks(together)
    }

    fn keyed<K: Clone + Into<Value>>(&self, stmt: &Stmt, before: &[Value], keys: &[K]) -> (Arc<str>, Vec<Value>) {
        let context = self.context();
        if context.dialect().has_arrays() {
            let list = Value::List(keys.iter().cloned().map(Into::into).collect());
            return (context.render(stmt, 1), before.iter().cloned().chain([list]).collect());
        }
        let (count, values) = list::padded(before, keys);
        (context.render(stmt, count), values)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::task::{Context, Poll, Waker};

    use super::*;

    /// Remembers how many bytes each statement had, and does nothing.
    pub(crate) struct Scale {
        context: StoreContext,
        pub(crate) statements: Vec<usize>,
    }

    impl Scale {
        pub(crate) fn new(dialect: Dialect) -> Self {
            Self { context: StoreContext::new(dialect), statements: Vec::new() }
        }
    }

    #[async_trait]
    impl Conn for Scale {
        fn context(&self) -> &StoreContext {
            &self.context
        }

        async fn execute(&mut self, _: &'static str, _: Arc<str>, values: Vec<Value>) -> Result<u64, StoreError> {
            self.statements.push(values.iter().map(Value::bytes).sum());
            Ok(0)
        }

        async fn fetch(
            &mut self,
            doing: &'static str,
            text: Arc<str>,
            values: Vec<Value>,
        ) -> Result<Vec<Row>, StoreError> {
            self.execute(doing, text, values).await.map(|_| Vec::new())
        }
    }

    /// Runs what never waits.
    pub(crate) fn at_once<T>(future: impl Future<Output = T>) -> T {
        match std::pin::pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(done) => done,
            Poll::Pending => panic!("it waits"),
        }
    }

    const TAG: Stmt = Stmt::shared("tagging", "INSERT INTO t (a, b) /*rows:text text*/");

    fn check(dialect: Dialect, sizes: &[usize], expected: &[usize]) {
        let mut scale = Scale::new(dialect);
        let conn: &mut dyn Conn = &mut scale;
        let bind = |size: &usize, values: &mut Vec<Value>| {
            values.extend(["x".into(), Value::Text(Some("y".repeat(*size - 1).into()))]);
        };
        at_once(conn.run_each(&TAG, sizes, bind)).expect("nothing can fail");
        assert_eq!(scale.statements, expected, "{dialect:?}");
    }

    #[test]
    fn a_list_is_cut_before_it_is_too_large_for_a_server() {
        const MIB: usize = 1_024 * 1_024;
        for &dialect in Dialect::ALL {
            check(dialect, &[10, 20, 30], &[60]);
            check(dialect, &[MIB; 10], &[4 * MIB, 4 * MIB, 2 * MIB]);
            check(dialect, &[MIB, 5 * MIB, MIB], &[MIB, 5 * MIB, MIB]);
        }
        check(Dialect::Postgres, &[MIB / 20; 100], &[80 * (MIB / 20), 20 * (MIB / 20)]);
        check(Dialect::Mysql, &[MIB / 20; 100], &[64 * (MIB / 20), 36 * (MIB / 20)]);
    }
}
