//! A job that exists exactly if the caller's transaction commits.

use ratchet::prelude::*;
use ratchet::sqlite::SubmitIn;
use ratchet::sqlite::sqlx::{self, SqlitePool};

#[job]
async fn ship(order: i64) {
    println!("shipping order {order}");
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("shop.db");
    let ratchet = Ratchet::builder().store(SqliteStore::open(&path).await?).jobs(jobs![ship]).start().await?;

    // The application's own connections, to the same file.
    let pool = SqlitePool::connect(&format!("sqlite://{}", path.display())).await?;
    sqlx::query("CREATE TABLE orders (id INTEGER PRIMARY KEY, item TEXT NOT NULL)").execute(&pool).await?;

    let mut tx = pool.begin_with("BEGIN IMMEDIATE").await?;
    sqlx::query("INSERT INTO orders VALUES (1, 'lamp')").execute(&mut *tx).await?;
    let handle = ratchet.enqueue(ship(1)).submit_in(&mut tx).await?;
    tx.rollback().await?;
    println!("rolled back: {}", handle.status().await.expect_err("the job went with its transaction"));

    let mut tx = pool.begin_with("BEGIN IMMEDIATE").await?;
    sqlx::query("INSERT INTO orders VALUES (2, 'chair')").execute(&mut *tx).await?;
    let handle = ratchet.enqueue(ship(2)).submit_in(&mut tx).await?;
    tx.commit().await?;
    println!("committed: {}", handle.wait().await?.state);

    ratchet.shutdown().await;
    Ok(())
}
