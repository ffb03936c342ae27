//! A store decorator: delegates to SQLite and counts the calls of each kind.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use ratchet::prelude::*;
use ratchet::store::{Call, StoreDecorator};
use ratchet::{Store, StoreError};

#[derive(Debug)]
struct Counting {
    inner: SqliteStore,
    calls: Mutex<BTreeMap<&'static str, u64>>,
}

impl StoreDecorator for Counting {
    fn inner(&self) -> &dyn Store {
        &self.inner
    }

    async fn around<T: Send>(
        &self,
        call: Call,
        answer: impl Future<Output = Result<T, StoreError>> + Send,
    ) -> Result<T, StoreError> {
        *self.calls.lock().unwrap().entry(call.operation).or_default() += 1;
        answer.await
    }
}

#[job]
async fn hello(name: String) {
    println!("hello, {name}");
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let inner = SqliteStore::open("jobs.db").await?;
    let store = Arc::new(Counting { inner, calls: Mutex::default() });
    let ratchet = Ratchet::builder().store(store.clone()).jobs(jobs![hello]).start().await?;
    ratchet.enqueue(hello("world".into())).submit().await?.wait().await?;
    ratchet.shutdown().await;
    let calls = store.calls.lock().unwrap();
    assert_eq!(calls["submit"], 1);
    println!("{calls:?}");
    Ok(())
}
