//! What the demo submits.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Result;
use ratchet::{Client, Enqueue, Job, JobExt, JobId, Priority, Tag};

use super::handlers::{apologize, charge, checksum, email, export, import, parse, report, thumbnail};

/// One run of the demo; its tag sets it apart from earlier runs on the same database.
pub(super) struct Run {
    pub(super) tag: Tag,
    pub(super) jobs_by_kind: BTreeMap<&'static str, u64>,
    pub(super) to_cancel: JobId,
}

const CANCEL_AFTER: Duration = Duration::from_millis(1_200);

pub(super) async fn submit(client: &Client) -> Result<Run> {
    let tag = Tag::new(format!("demo-{:08x}", fastrand::u32(..)))?;
    let mut batch = Batch { client, tag: &tag, jobs_by_kind: BTreeMap::new() };
    let long = batch.client.enqueue(export()).tags([tag.as_str()]).priority(Priority::High).submit().await?;
    *batch.jobs_by_kind.entry(kind_of(&export)).or_default() += 1;

    batch.add((0..100).map(thumbnail), |job| job).await?;
    // Every fourth fails once, every twelfth three times.
    let fails = |n: u32| if n.is_multiple_of(12) { 3 } else { u32::from(n.is_multiple_of(4)) };
    batch.add((1..=60).map(|n| email(fails(n))), |job| job).await?;
    batch.add((1..=8).map(|n| import(n * 1_000)), Enqueue::immediate).await?;
    batch.add((0..12).map(checksum), |job| job.priority(Priority::Low)).await?;
    let sorry = |tag: &Tag| apologize().with(|step| step.tags([tag.as_str()]));
    batch.add((1..=14).map(|n| charge(n * 100, n % 5 == 0)), |job| job.on_failure(sorry(&tag))).await?;
    batch.add([0, 1, 2].map(report), |job| job).await?;
    batch.add(["42", "forty-two"].map(|text| parse(text.to_owned())), |job| job).await?;
    batch.add([thumbnail(1_000)], |job| job.delay(Duration::from_secs(2))).await?;

    let jobs_by_kind = batch.jobs_by_kind;
    Ok(Run { tag, jobs_by_kind, to_cancel: long.id() })
}

struct Batch<'a> {
    client: &'a Client,
    tag: &'a Tag,
    jobs_by_kind: BTreeMap<&'static str, u64>,
}

impl Batch<'_> {
    /// Submits jobs of one kind in one transaction.
    async fn add<J: Job>(
        &mut self,
        jobs: impl IntoIterator<Item = J>,
        options: impl Fn(Enqueue<J>) -> Enqueue<J>,
    ) -> Result<()> {
        let jobs = jobs.into_iter().map(|job| options(self.client.enqueue(job).tags([self.tag.as_str()])));
        let submitted = self.client.submit_all(jobs.collect::<Vec<_>>()).await?;
        *self.jobs_by_kind.entry(J::KIND).or_default() += submitted.len() as u64;
        Ok(())
    }
}

fn kind_of<J: Job>(_constructor: &impl Fn() -> J) -> &'static str {
    J::KIND
}

/// Cancels the job that would not end by itself. Waits for ever afterwards, so that it can stand beside other waits.
pub(super) async fn cancel_soon(client: &Client, id: JobId) {
    tokio::time::sleep(CANCEL_AFTER).await;
    // If it fails, the job is still there and the demo says so.
    let _ = client.cancel(id).await;
    std::future::pending::<()>().await;
}
