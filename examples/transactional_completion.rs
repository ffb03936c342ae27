//! Exactly once: the handler's writes and the job's completion commit together, whatever crashes or repeats.

use ratchet::prelude::*;
use ratchet::sqlite::CompleteIn;
use ratchet::sqlite::sqlx::{self, SqlitePool};

#[job(backoff = "fixed 50ms")]
async fn deposit(ctx: &JobContext, pool: State<SqlitePool>, cents: i64) -> Result<i64, ratchet::BoxError> {
    let mut tx = pool.begin_with("BEGIN IMMEDIATE").await?;
    sqlx::query("UPDATE account SET cents = cents + ?").bind(cents).execute(&mut *tx).await?;
    let balance: i64 = sqlx::query_scalar("SELECT cents FROM account").fetch_one(&mut *tx).await?;
    if ctx.attempt() == 1 {
        println!("attempt 1 fails before its commit: nothing is written");
        return Err("the power went out".into());
    }
    // The last statement before the commit.
    ctx.complete_in(&mut tx, &balance).await?;
    tx.commit().await?;
    println!("attempt {} committed the deposit and its own completion", ctx.attempt());
    // Too late to matter: the job is already done.
    Err("the network went out".into())
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("bank.db");
    let store = SqliteStore::open(&path).await?;
    let pool = SqlitePool::connect(&format!("sqlite://{}", path.display())).await?;
    sqlx::query("CREATE TABLE account (cents INTEGER NOT NULL)").execute(&pool).await?;
    sqlx::query("INSERT INTO account VALUES (0)").execute(&pool).await?;

    let ratchet = Ratchet::builder().store(store).jobs(jobs![deposit]).state(pool.clone()).start().await?;
    let handle = ratchet.enqueue(deposit(500)).submit().await?;
    println!("the job's result is {}", handle.result().await?);
    ratchet.shutdown().await;

    let cents: i64 = sqlx::query_scalar("SELECT cents FROM account").fetch_one(&pool).await?;
    println!("the account holds {cents}; the job is {}", handle.status().await?);
    Ok(())
}
