use std::convert::Infallible;

use futures_core::Stream;
use futures_util::StreamExt as _;
use ratchet_core::batch::{NewBatch, ProgressEvery, ProgressHook};
use ratchet_core::prepare::{PrepareSubmit, PreparedSubmit};
use ratchet_core::store::SubmitUnit;
use ratchet_core::{BatchSummary, ErrorKind, IdempotencyKey, InvalidInput, NewJob, StoreError, Tag, limits};

use super::end::BatchEnd;
use super::feed::{FeedError, OpenBatch, child_job};
use super::handle::BatchHandle;
use crate::client::Client;
use crate::job::failure::BoxError;
use crate::node::ids::new_job_id;
use crate::submit::error::{SubmitError, SubmittedKind};
use crate::submit::step::{IntoStep, Later, Step, apply};
use crate::submit::unit::Waking;
use crate::workflow::{IntoBranch, Plan, When, result};

/// A batch that is about to be submitted; nothing happens before [`submit`](Self::submit) or [`stream`](Self::stream).
///
/// Its children run like any jobs, and a job of Ratchet's own stands for all of them: it ends when the last child has, and
/// its result is the [`BatchSummary`]. It succeeds also if children failed; what follows is told by branches.
///
/// ```
/// use ratchet_core::batch::ProgressEvery;
/// use ratchet_engine::{Client, Failure, Job, JobContext};
/// # use serde::{Deserialize, Serialize};
/// # macro_rules! job { ($name:ident, $kind:literal) => {
/// #     #[derive(Serialize, Deserialize)] struct $name;
/// #     impl Job for $name {
/// #         const KIND: &'static str = $kind;
/// #         type Output = ();
/// #         async fn run(self, _: JobContext) -> Result<(), Failure> { Ok(()) }
/// #     }
/// # } }
/// # job!(Import, "import"); job!(Report, "report"); job!(Alarm, "alarm"); job!(Recorder, "tell");
/// # async fn example(client: Client) -> Result<(), Box<dyn std::error::Error>> {
/// let batch = client
///     .batch()
///     .children((0..1_000).map(|_| Import))
///     .then_on_batch_success(Report)
///     .when_failure_count(10, Alarm)
///     .on_progress(Recorder, ProgressEvery::Percent(10))
///     .submit()
///     .await?;
/// println!("{:?}", batch.summary().await?);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "nothing is submitted before .submit() or .stream(…)"]
pub struct BatchBuilder {
    client: Client,
    children: Vec<Step>,
    branches: Vec<(When, Step)>,
    exclusive: bool,
    hook: Option<(Step, ProgressEvery)>,
    parent: Result<ParentOptions, InvalidInput>,
    chunk: usize,
}

/// The options of the batch's parent job.
#[derive(Debug, Default)]
struct ParentOptions {
    idempotency_key: Option<IdempotencyKey>,
    tags: Vec<Tag>,
}

impl BatchBuilder {
    pub(crate) fn new(client: Client) -> Self {
        Self {
            client,
            children: Vec::new(),
            branches: Vec::new(),
            exclusive: false,
            hook: None,
            parent: Ok(ParentOptions::default()),
            chunk: OpenBatch::CHUNK_DEFAULT,
        }
    }

    /// Adds a child, with or without options of its own. Ten thousand at most; more come as a [`stream`](Self::stream).
    pub fn child(mut self, step: impl IntoStep) -> Self {
        self.children.push(step.into_step());
        self
    }

    /// Adds children.
    pub fn children<S: IntoStep>(mut self, steps: impl IntoIterator<Item = S>) -> Self {
        // One more than may be, so that an endless iterator is refused too.
        let room = (limits::SUBMIT_JOBS_MAX + 1).saturating_sub(self.children.len());
        self.children.extend(steps.into_iter().take(room).map(IntoStep::into_step));
        self
    }

    /// Follows when every child has succeeded.
    pub fn then_on_batch_success(self, step: impl IntoStep) -> Self {
        self.when(result("/clean").is(true), step)
    }

    /// Follows when every child has ended and one has failed or was canceled.
    pub fn then_on_batch_failure(self, step: impl IntoStep) -> Self {
        self.when(result("/clean").is(false), step)
    }

    /// Follows when every child has ended and this share of them, from 0 to 1, or more has succeeded.
    pub fn when_success_rate(self, at_least: f64, step: impl IntoStep) -> Self {
        let mut when = result("/success_rate").at_least(at_least);
        if !(0.0..=1.0).contains(&at_least) {
            when.condition = Err(InvalidInput::new("success_rate", format!("is {at_least}; give a share from 0 to 1")));
        }
        self.when(when, step)
    }

    /// Follows when every child has ended and so many or more are in the dead letter queue.
    pub fn when_failure_count(self, at_least: u64, step: impl IntoStep) -> Self {
        self.when(result("/failed").at_least(at_least), step)
    }

    /// Follows when every child has ended and the [`BatchSummary`] is so: [`result`], or a function under `#[condition]`.
    pub fn when(mut self, condition: impl IntoBranch<BatchSummary>, step: impl IntoStep) -> Self {
        self.branches.push((condition.into_branch(), step.into_step()));
        self
    }

    /// Of the branches at most one is taken: the first that holds, by priority and then in their order.
    pub fn exclusive(mut self) -> Self {
        self.exclusive = true;
        self
    }

    /// Submits a job whenever the batch has come so much further, in the transaction that ends a child: at most once for
    /// each threshold, on however many nodes its children run. Of thresholds that are passed at once the last is told.
    ///
    /// The job finds the [`BatchProgress`](ratchet_core::BatchProgress) as the result of its origin.
    pub fn on_progress(mut self, step: impl IntoStep, every: ProgressEvery) -> Self {
        self.hook = Some((step.into_step(), every));
        self
    }

    /// Deduplicates submissions. The first batch submitted with this key wins; later submissions return its handle and add
    /// no children.
    pub fn idempotency_key(mut self, key: impl AsRef<str>) -> Self {
        apply(&mut self.parent, |parent| IdempotencyKey::new(key).map(|key| parent.idempotency_key = Some(key)));
        self
    }

    /// Adds tags to find the batch by, among jobs.
    pub fn tags<T: AsRef<str>>(mut self, tags: impl IntoIterator<Item = T>) -> Self {
        apply(&mut self.parent, |parent| {
            for tag in tags {
                let tag = Tag::new(tag)?;
                if !parent.tags.contains(&tag) {
                    parent.tags.push(tag);
                }
            }
            Ok(())
        });
        self
    }

    /// How many children of a stream are stored together: 500 by default, ten thousand at most.
    pub fn chunk(mut self, children: usize) -> Self {
        self.chunk = children;
        self
    }

    /// Stores the batch with all its children in one transaction.
    ///
    /// # Errors
    /// [`SubmitError::Invalid`] names the child, the branch or the field that is wrong, [`SubmitError::Duplicate`] the key
    /// that a live job holds; nothing is written then. [`SubmitError::IdempotencyKeyReused`] if the idempotency key stands for a job or a
    /// workflow. [`SubmitError::Store`] if the database could not be reached.
    pub async fn submit(self) -> Result<BatchHandle, SubmitError> {
        let client = self.client.clone();
        let unit = self.into_unit(true)?;
        let waking = Waking::of_ready(&unit.jobs);
        let outcome = client.store_unit(unit).await?;
        client.submitted(waking);
        client.check_submitted_kind(outcome[0], SubmittedKind::Batch).await?;
        Ok(BatchHandle::new(client, outcome[0]))
    }

    /// Stores the batch first, then its children as the stream gives them, some at a time, and seals it when the stream ends.
    ///
    /// Children run while the stream goes on, and the next ones are asked for only when those before are stored: memory
    /// holds one chunk. If the database or this process ends before the stream does, the batch stays open with the children
    /// that it has; [`Client::open_batch`](crate::Client::open_batch) goes on from there. The end of the stream is taken at
    /// its word: a source that can fail, and so end too soon, goes to [`try_stream`](Self::try_stream).
    ///
    /// # Errors
    /// [`FeedError`] says which batch was left open, and with how many children: also one that an earlier submit with the
    /// same idempotency key has left so.
    pub async fn stream<S>(self, children: S) -> Result<BatchHandle, FeedError>
    where
        S: Stream + Send,
        S::Item: IntoStep,
    {
        self.try_stream(children.map(Ok::<_, Infallible>)).await
    }

    /// As [`stream`](Self::stream), of a source that can fail: its first error leaves the batch open.
    ///
    /// ```
    /// # use futures_core::Stream;
    /// # use ratchet_engine::{Client, FeedError, Failure, Job, JobContext};
    /// # #[derive(serde::Serialize, serde::Deserialize)] struct Import(u64);
    /// # impl Job for Import {
    /// #     const KIND: &'static str = "import";
    /// #     type Output = ();
    /// #     async fn run(self, _: JobContext) -> Result<(), Failure> { Ok(()) }
    /// # }
    /// async fn import_all(
    ///     client: &Client,
    ///     rows: impl Stream<Item = Result<Import, std::io::Error>> + Send,
    /// ) -> Result<(), FeedError> {
    ///     client.batch().try_stream(rows).await?;
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// As [`stream`](Self::stream); [`FeedCause::Source`](crate::FeedCause::Source) has what the source said.
    pub async fn try_stream<S, C, E>(self, children: S) -> Result<BatchHandle, FeedError>
    where
        S: Stream<Item = Result<C, E>> + Send,
        C: IntoStep,
        E: Into<BoxError>,
    {
        let given = self.children.len();
        if given > 0 {
            let problem = "are given beside a stream; put them into the stream";
            return Err(FeedError::unopened(InvalidInput::new("children", problem)));
        }
        let open = self.open().await.map_err(FeedError::unopened)?;
        let handle = open.handle();
        if handle.is_duplicate() {
            return earlier(handle).await;
        }
        let added = open.try_extend(children).await?;
        match open.seal().await {
            Ok(()) => Ok(handle),
            Err(error) => Err(open.broken_off(added, error).await),
        }
    }

    /// Stores the batch without children, open for them.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub async fn open(self) -> Result<OpenBatch, SubmitError> {
        let (client, chunk) = (self.client.clone(), self.chunk);
        if !(1..=limits::SUBMIT_JOBS_MAX).contains(&chunk) {
            let problem = format!("is {chunk}; give 1 to {}", limits::SUBMIT_JOBS_MAX);
            return Err(InvalidInput::new("chunk", problem).into());
        }
        let unit = self.into_unit(false)?;
        let outcome = client.store_unit(unit).await?;
        client.check_submitted_kind(outcome[0], SubmittedKind::Batch).await?;
        Ok(OpenBatch::new(BatchHandle::new(client, outcome[0]), chunk))
    }

    fn into_unit(self, sealed: bool) -> Result<SubmitUnit, InvalidInput> {
        let Self { client, children, branches, exclusive, hook, parent: options, .. } = self;
        limits::check_submit_count(children.len())?;
        let mut parent = NewJob::new(new_job_id(), BatchEnd::spec()?);
        let ParentOptions { idempotency_key, tags } = options?;
        (parent.idempotency_key, parent.spec.tags) = (idempotency_key, tags);
        parent.check()?;
        let hook = hook.map(|(step, every)| {
            every.check()?;
            let spec = step.into_spec(Later::Callback)?;
            spec.check()?;
            Ok(ProgressHook { spec, every })
        });
        let named = |e: InvalidInput| InvalidInput::new(format!("on_progress.{}", e.field()), e.problem());
        let batch = NewBatch { id: parent.id, sealed, hook: hook.transpose().map_err(named)? };
        let children = children.into_iter().enumerate().map(|(at, step)| child_job(at as u64, step));
        let children = children.collect::<Result<Vec<_>, _>>()?;
        let mut plan = Plan::new(vec![parent]);
        for (at, (when, step)) in branches.into_iter().enumerate() {
            let named = |e: InvalidInput| InvalidInput::new(format!("when[{at}].{}", e.field()), e.problem());
            let job = step.into_job().map_err(named)?;
            job.check().map_err(named)?;
            let condition = when.condition.map_err(named)?;
            let place = plan.add(job);
            plan.link(0, place, When { condition: Ok(condition), ..when }, exclusive);
        }
        plan.unit(&client)?.with_batch(batch, children)
    }
}

/// The batch of an earlier stream with the same idempotency key: it stands for this one, unless that stream broke off.
async fn earlier(handle: BatchHandle) -> Result<BatchHandle, FeedError> {
    let batch = handle.record().await.map_err(FeedError::unopened)?;
    if batch.refusal().is_some() {
        return Ok(handle);
    }
    let doing = "streaming children under an idempotency key that was used before";
    let problem = "the batch of that key is open: somebody feeds it at this moment, or has left off";
    Err(FeedError::left_open(handle.id(), 0, StoreError::new(ErrorKind::Conflict, doing, problem)))
}

impl PrepareSubmit for BatchBuilder {
    type Handle = BatchHandle;
    type Error = SubmitError;

    fn prepare(self) -> Result<PreparedSubmit<BatchHandle, SubmitError>, SubmitError> {
        let client = self.client.clone();
        let unit = client.admit(self.into_unit(true)?)?;
        let hint = client.hint(Waking::of_ready(&unit.jobs));
        Ok(unit.prepared(hint, move |outcome| {
            let submitted = outcome?[0];
            client.wake().expect(submitted.id());
            Ok(BatchHandle::new(client, submitted))
        }))
    }
}
