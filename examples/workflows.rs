//! Branches on a result, and a workflow with a join.

use std::error::Error;

use ratchet::prelude::*;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Order {
    number: u64,
    cents: u64,
    country: String,
}

#[job(kind = "orders.accept")]
async fn accept(order: Order) -> Order {
    order
}

#[job(kind = "orders.review")]
async fn review(order: Prev<Order>) {
    println!("order {} is looked at by a person", order.number);
}

#[job(kind = "orders.customs")]
async fn declare_to_customs(order: Prev<Order>) {
    println!("order {} goes to {}", order.number, order.country);
}

#[job(kind = "orders.pack")]
async fn pack(order: Prev<Order>) -> String {
    format!("parcel {}", order.number)
}

#[job(kind = "orders.invoice")]
async fn invoice(order: Prev<Order>) -> String {
    format!("invoice over {}", order.cents)
}

/// It follows two steps, and has the results of both.
#[job(kind = "orders.ship")]
async fn ship(papers: Prev<(String, String)>) -> String {
    let (parcel, invoice) = papers.into_inner();
    format!("{parcel} with {invoice}")
}

/// Stored by its name, run on a node that has it; the compiler checks that it judges orders.
#[condition]
fn is_large(order: &Order) -> bool {
    order.cents >= 100_000
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let store = SqliteStore::open("jobs.db").await?;
    let ratchet = Ratchet::builder()
        .store(store)
        .jobs(jobs![accept, review, declare_to_customs, pack, invoice, ship])
        .jobs(conditions![is_large])
        .start()
        .await?;
    let order = Order { number: 7, cents: 250_000, country: "CH".to_owned() };

    // Branches hang on the first job. A condition is a function, or data: a place in the result and a comparison.
    let accepted = ratchet
        .enqueue(accept(order.clone()))
        .when(is_large.describe("large sums"), review())
        .when(result("/country").is_not("DE"), declare_to_customs())
        .submit()
        .await?;
    let branches = ratchet.workflow_handle(accepted.id()).await?.ok_or("it is there")?;
    println!("branches: {:?}", branches.wait().await?.state());

    // Any shape: names and edges.
    let shipment = ratchet
        .workflow()
        .step("accept", accept(order))
        .step("pack", pack())
        .step("invoice", invoice())
        .step("ship", ship())
        .edge("accept", "pack")
        .edge("accept", "invoice")
        .edge("pack", "ship")
        .edge("invoice", "ship")
        .submit()
        .await?;
    let shipped = shipment.step::<String>("ship").ok_or("there is such a step")?;
    println!("shipped: {}", shipped.result().await?);
    ratchet.shutdown().await;
    Ok(())
}
