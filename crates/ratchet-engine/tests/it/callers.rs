//! Clients that act for somebody: what he may do, and what he sees.

use std::time::Duration;

use ratchet_core::explain::{Reason, WithheldScope};
use ratchet_core::insight::Depth;
use ratchet_core::page::JobFilter;
use ratchet_core::schedule::ScheduleFilter;
use ratchet_core::{
    CountBy, Counted, DeadLetterFilter, ErrorKind, InvalidInput, JobId, JobState, Kind, MemoryStore, Principal,
    QueueName, ServiceName, StoreError,
};
use ratchet_engine::{
    Action, Authorizer, Client, FeedCause, JobExt as _, OwnJobs, Scope, SignalError, SubmitError, Target, new_job_id,
    result,
};

use crate::support::{Play, Stage, memory, quick};

fn work() -> Play {
    Play::Return("x".into())
}

fn later() -> Duration {
    Duration::from_mins(1)
}

/// A client whose callers have their own jobs, the application's view, and two views of callers.
fn own_jobs() -> (Client, Client, Client) {
    callers(Client::new(memory()).with_authorizer(OwnJobs::new().operator("root").unwrap()))
}

fn callers(application: Client) -> (Client, Client, Client) {
    let (alice, bob) = (application.as_principal("alice").unwrap(), application.as_principal("bob").unwrap());
    (application, alice, bob)
}

/// Everything that can be asked about one id.
const QUESTIONS: &[&str] = &[
    "find",
    "record",
    "result",
    "attempts",
    "last_attempts",
    "explain",
    "awaited_signal",
    "dependants",
    "workflow_graph",
    "workflow_handle",
    "cancel_workflow",
    "batch_record",
    "batch_progress",
    "batch_handle",
    "cancel_batch",
    "open_batch",
    "seal_batch",
    "pause",
    "resume",
    "retry",
    "delete",
    "cancel",
    "signal_job",
    "replace",
    "find_schedule",
    "schedule_handle",
    "pause_schedule",
    "resume_schedule",
    "run_schedule_now",
    "cancel_schedule",
];

/// What a client answers to a question, without the id.
async fn answer(question: &str, client: &Client, id: JobId) -> String {
    let handle = client.handle::<String>(id);
    let answer = match question {
        "find" => format!("{:?}", client.find(id).await),
        "record" => format!("{:?}", handle.record().await),
        "result" => format!("{:?}", tokio::time::timeout(Duration::from_millis(50), handle.result()).await),
        "attempts" => format!("{:?}", client.attempts(id).await),
        "last_attempts" => format!("{:?}", client.last_attempts(id, None, 10).await),
        "explain" => format!("{:?}", client.explain(id).await),
        "awaited_signal" => format!("{:?}", client.awaited_signal(id).await),
        "dependants" => format!("{:?}", client.dependants(id).await),
        "workflow_graph" => format!("{:?}", client.workflow_graph(id).await),
        "workflow_handle" => format!("{:?}", client.workflow_handle(id).await.map(|found| found.is_some())),
        "cancel_workflow" => format!("{:?}", client.cancel_workflow(id).await),
        "batch_record" => format!("{:?}", client.batch_record(id).await),
        "batch_progress" => format!("{:?}", client.batch_progress(id).await),
        "batch_handle" => format!("{:?}", client.batch_handle(id).record().await),
        "cancel_batch" => format!("{:?}", client.cancel_batch(id).await),
        "open_batch" => format!("{:?}", client.open_batch(id).await.map(drop)),
        "seal_batch" => format!("{:?}", client.seal_batch(id).await),
        "pause" => format!("{:?}", client.pause(id).await),
        "resume" => format!("{:?}", client.resume(id).await),
        "retry" => format!("{:?}", client.retry(id).await),
        "delete" => format!("{:?}", client.delete(id).await),
        "cancel" => format!("{:?}", client.cancel(id).await),
        "signal_job" => {
            let sent = client.signal_job(id).approve().send().await;
            format!("{:?}", sent.map(|sent| (sent.delivered, sent.released, sent.kept)))
        }
        "replace" => format!("{:?}", client.enqueue(work()).replace(id).await.map(drop)),
        "find_schedule" => format!("{:?}", client.find_schedule(id).await),
        "schedule_handle" => format!("{:?}", client.schedule_handle(id).record().await),
        "pause_schedule" => format!("{:?}", client.pause_schedule(id).await),
        "resume_schedule" => format!("{:?}", client.resume_schedule(id).await),
        "run_schedule_now" => format!("{:?}", client.run_schedule_now(id).await),
        "cancel_schedule" => format!("{:?}", client.cancel_schedule(id).await),
        other => unreachable!("{other}"),
    };
    answer.replace(&id.to_string(), "ID")
}

/// Jobs and schedules of bob's, and one of nobody's, in every state that a question could be about.
async fn bobs_things(node: &Client) -> Vec<JobId> {
    let (application, _, bob) = callers(node.clone());
    let dead = bob.enqueue(Play::FailForGood).submit().await.unwrap();
    dead.wait().await.unwrap();
    let chain = bob.enqueue(work()).delay(later()).then(work()).submit().await.unwrap().id();
    let awaiting = bob.enqueue(work()).await_signal("key", None).submit().await.unwrap().id();
    let paused = bob.enqueue(work()).delay(later()).submit().await.unwrap().id();
    assert!(bob.pause(paused).await.unwrap());
    let batch = bob.batch().open().await.unwrap().handle().id();
    let schedule = bob.schedule(work()).every(later()).create().await.unwrap().id();
    let resting = bob.schedule(work()).every(later()).create().await.unwrap().id();
    assert!(bob.pause_schedule(resting).await.unwrap());
    let nobodys = application.enqueue(work()).delay(later()).submit().await.unwrap().id();
    vec![dead.id(), chain, awaiting, paused, batch, schedule, resting, nobodys]
}

#[tokio::test]
async fn what_a_caller_may_not_read_looks_as_if_it_were_not_there() {
    for question in QUESTIONS {
        let authorizer = OwnJobs::new().operator("root").unwrap();
        let node = quick(&Stage::default()).store(memory()).authorizer(authorizer).start().await.unwrap();
        let (application, alice, _) = callers((*node).clone());
        let things = bobs_things(&application).await;
        let all = async || {
            let jobs = application.list(&JobFilter::default(), None, 100).await.unwrap();
            (jobs, application.schedules(&ScheduleFilter::default(), None, 100).await.unwrap())
        };
        let before = all().await;
        let missing = answer(question, &alice, new_job_id()).await;
        for hidden in &things {
            assert_eq!(answer(question, &alice, *hidden).await, missing, "{question}");
        }
        assert_eq!(all().await, before, "{question}: nothing has changed");
        // That proves something only if there was something to tell.
        let root = application.as_principal("root").unwrap();
        let missing = answer(question, &root, new_job_id()).await;
        let mut tells = false;
        for thing in &things {
            tells |= answer(question, &root, *thing).await != missing;
        }
        assert!(tells, "{question}");
        node.shutdown().await;
    }
}

/// Everybody sees everything, and changes nothing.
struct LookOnly;

impl Authorizer for LookOnly {
    fn allows(&self, _caller: &Principal, action: Action, _target: &Target<'_>) -> bool {
        action == Action::Read
    }

    fn scope(&self, _caller: &Principal) -> Scope {
        Scope::Everything
    }
}

#[track_caller]
fn assert_denied<T: std::fmt::Debug>(answer: Result<T, StoreError>, action: Action) {
    let denied = answer.expect_err(action.as_str());
    let ErrorKind::Denied { action: verb, principal } = denied.kind() else { panic!("{denied:?}") };
    assert_eq!((*verb, principal.as_str()), (action.as_str(), "alice"));
    let text = denied.to_string();
    assert!(text.contains(&format!("\"alice\" may not {action} ")), "{text}");
}

fn store_error(error: SignalError) -> StoreError {
    match error {
        SignalError::Store(error) => error,
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn what_a_caller_may_read_but_not_change_is_denied_by_name() {
    let (application, alice, _) = callers(Client::new(memory()).with_authorizer(LookOnly));
    let job = application.enqueue(work()).delay(later()).await_signal("key", None).submit().await.unwrap().id();
    let batch = application.batch().open().await.unwrap().handle().id();
    let schedule = application.schedule(work()).every(later()).create().await.unwrap().id();
    let (queue, service) = (QueueName::default(), ServiceName::new("payments").unwrap());
    let before = application.list(&JobFilter::default(), None, 100).await.unwrap();
    assert_eq!(alice.find(job).await.unwrap().map(|job| job.id), Some(job));
    assert_denied(alice.cancel(job).await, Action::Cancel);
    assert_denied(alice.pause(job).await, Action::Pause);
    assert_denied(alice.resume(job).await, Action::Resume);
    assert_denied(alice.retry(job).await, Action::Retry);
    assert_denied(alice.delete(job).await, Action::Delete);
    assert_denied(alice.cancel_workflow(job).await, Action::Cancel);
    assert_denied(alice.cancel_batch(batch).await, Action::Cancel);
    assert_denied(alice.open_batch(batch).await, Action::Extend);
    assert_denied(alice.seal_batch(batch).await, Action::Extend);
    assert_denied(alice.signal_job(job).send().await.map_err(store_error), Action::Signal);
    assert_denied(alice.signal("key").send().await.map_err(store_error), Action::Signal);
    assert_denied(alice.pause_schedule(schedule).await, Action::Pause);
    assert_denied(alice.resume_schedule(schedule).await, Action::Resume);
    assert_denied(alice.run_schedule_now(schedule).await, Action::Fire);
    assert_denied(alice.cancel_schedule(schedule).await, Action::Cancel);
    assert_denied(alice.pause_queue(&queue).await, Action::Pause);
    assert_denied(alice.resume_queue(&queue).await, Action::Resume);
    assert_denied(alice.open_breaker(&service).await, Action::Pause);
    assert_denied(alice.reset_breaker(&service).await, Action::Resume);
    assert_denied(alice.retry_all(&DeadLetterFilter::default(), 10).await, Action::Retry);
    assert_denied(alice.archive(JobState::Succeeded, later()).await, Action::Archive);
    assert_denied(alice.archive_dead_letters(later()).await, Action::Archive);
    assert_denied(alice.purge_archive(later()).await, Action::Purge);
    assert_denied(alice.purge_job_logs(later()).await, Action::Purge);
    let denied = [
        alice.enqueue(work()).submit().await.unwrap_err(),
        alice.batch().open().await.unwrap_err(),
        alice.schedule(work()).every(later()).create().await.unwrap_err(),
    ];
    for denied in denied {
        let SubmitError::Denied(denied) = denied else { panic!("{denied:?}") };
        assert_eq!((denied.action(), denied.principal().as_str()), (Action::Create, "alice"));
    }
    assert_eq!(application.list(&JobFilter::default(), None, 100).await.unwrap(), before, "and nothing has changed");
    assert_eq!(application.schedules(&ScheduleFilter::default(), None, 10).await.unwrap().items.len(), 1);
    assert!(!application.queues().await.unwrap().iter().any(|queue| queue.paused));
    assert_eq!(application.breakers().await.unwrap(), []);
    assert!(application.cancel(job).await.unwrap(), "the application itself is not restricted");
}

/// Everybody may create and read, and nothing else.
struct NoReplacing;

impl Authorizer for NoReplacing {
    fn allows(&self, _caller: &Principal, action: Action, _target: &Target<'_>) -> bool {
        action != Action::Replace
    }

    fn scope(&self, _caller: &Principal) -> Scope {
        Scope::Everything
    }
}

#[tokio::test]
async fn who_may_create_may_not_therefore_replace() {
    let (application, alice, _) = callers(Client::new(memory()).with_authorizer(NoReplacing));
    let old = application.enqueue(work()).delay(later()).submit().await.unwrap();
    let denied = alice.enqueue(work()).replace(old.id()).await.unwrap_err();
    assert!(matches!(&denied, SubmitError::Denied(denied) if denied.action() == Action::Replace), "{denied:?}");
    assert_eq!(old.status().await.unwrap(), JobState::Pending);
}

#[tokio::test]
async fn who_learns_the_id_of_a_batch_by_its_key_cannot_extend_it() {
    let (application, alice, bob) = own_jobs();
    let import = |client: &Client| client.batch().idempotency_key("bob:import").open();
    let bobs = import(&bob).await.unwrap().handle();
    let hers = import(&alice).await.unwrap();
    assert_eq!((hers.handle().id(), hers.handle().is_duplicate()), (bobs.id(), true));
    let refused = hers.extend(futures_util::stream::iter([work()])).await.unwrap_err();
    let missing = format!("{:?}", alice.open_batch(bobs.id()).await.unwrap_err().kind());
    let FeedCause::Submit(SubmitError::Store(error)) = &refused.cause else { panic!("{refused:?}") };
    assert_eq!((format!("{:?}", error.kind()), refused.open, refused.added), (missing, false, 0));
    assert_eq!(bobs.record().await.unwrap().counts.total, 0);
    assert_eq!(application.list(&JobFilter::default(), None, 10).await.unwrap().items.len(), 1);
    let again = import(&bob).await.unwrap();
    assert_eq!(again.extend(futures_util::stream::iter([work()])).await.unwrap(), 1, "he may go on by his key");
}

#[tokio::test]
async fn an_explanation_tells_a_caller_nothing_of_others() {
    let (application, alice, bob) = own_jobs();
    bob.enqueue(work()).submit().await.unwrap();
    let hers = alice.enqueue(work()).submit().await.unwrap().id();
    let reasons = async |client: &Client| client.explain(hers).await.unwrap().unwrap().reasons;
    let told = [Reason::NoNode { kind: Kind::new("play").unwrap(), queue: QueueName::default(), living: 0 }];
    let behind = Reason::Behind { jobs: Depth { count: 1, or_more: false } };
    assert_eq!(reasons(&application).await, [told.as_slice(), &[behind]].concat());
    let root = application.as_principal("root").unwrap();
    assert_eq!(reasons(&root).await, reasons(&application).await, "who may read the lists is told all");
    let blurred = [WithheldScope::Nodes, WithheldScope::Queue].map(|beyond| Reason::Withheld { beyond });
    assert_eq!(reasons(&alice).await, blurred);
}

#[tokio::test]
async fn lists_show_a_caller_his_own_on_full_pages() {
    let (application, alice, bob) = own_jobs();
    for round in 0..12 {
        for client in [&alice, &bob, &bob, &application] {
            client.enqueue(work()).delay(later()).submit().await.unwrap();
        }
        if round % 3 == 0 {
            for client in [&alice, &bob] {
                client.batch().open().await.unwrap();
                client.enqueue(work()).delay(later()).then(work()).submit().await.unwrap();
                client.schedule(work()).every(later()).create().await.unwrap();
            }
        }
    }
    let own = |principal: &Option<Principal>| principal.as_ref().is_some_and(|principal| principal.as_str() == "alice");
    let page = alice.list(&JobFilter::default(), None, 10).await.unwrap();
    assert_eq!(page.items.len(), 10, "a page is full though every fourth job is hers");
    assert!(page.items.iter().all(|job| own(&job.spec.principal)));
    let rest = alice.list(&JobFilter::default(), page.next, 100).await.unwrap();
    assert_eq!((rest.items.len(), rest.next), (24 - 10, None));
    let bobs = JobFilter { principal: Some(Principal::new("bob").unwrap()), ..JobFilter::default() };
    assert!(alice.list(&bobs, None, 10).await.unwrap().items.is_empty(), "not even if she asks for his");
    let counts = alice.count_by_state().await.unwrap();
    assert_eq!((counts[&JobState::Pending], counts[&JobState::Waiting]), (16, 8));
    assert_eq!(alice.count(&JobFilter::default(), &CountBy::State).await.unwrap().jobs, 24);
    assert_eq!(alice.count(&bobs, &CountBy::State).await.unwrap(), Counted::default());
    let batches = alice.batches(None, 3).await.unwrap();
    assert_eq!(batches.items.len(), 3);
    assert_eq!(alice.batches(batches.next, 10).await.unwrap().items.len(), 1);
    let workflows = alice.workflows(None, 3).await.unwrap();
    assert_eq!(workflows.items.len(), 3);
    assert_eq!(alice.workflows(workflows.next, 10).await.unwrap().items.len(), 1);
    let schedules = alice.schedules(&ScheduleFilter::default(), None, 3).await.unwrap();
    assert!(schedules.items.iter().all(|schedule| own(&schedule.spec.principal)));
    assert_eq!(schedules.items.len(), 3);
    assert_eq!(alice.schedules(&ScheduleFilter::default(), schedules.next, 10).await.unwrap().items.len(), 1);
    let by_hand = ScheduleFilter { declared: Some(false), ..ScheduleFilter::default() };
    assert_eq!(alice.cancel_schedules(&by_hand).await.unwrap(), 4, "she ends hers");
    assert_eq!(
        application.schedules(&ScheduleFilter::default(), None, 10).await.unwrap().items.len(),
        4,
        "and not his"
    );
    let root = application.as_principal("root").unwrap();
    assert_eq!(root.count_by_state().await.unwrap(), application.count_by_state().await.unwrap());
    assert_eq!(root.batches(None, 100).await.unwrap().items.len(), 8);
}

#[tokio::test]
async fn dead_letters_are_seen_and_retried_by_their_own() {
    let stage = Stage::default();
    let node = quick(&stage).store(memory()).authorizer(OwnJobs::new()).start().await.unwrap();
    let (_, alice, bob) = callers((*node).clone());
    for client in [&alice, &bob, &bob] {
        client.enqueue(Play::FailForGood).submit().await.unwrap().wait().await.unwrap();
    }
    node.shutdown().await;
    assert_eq!(alice.dead_letters(&JobFilter::default(), None, 10).await.unwrap().items.len(), 1);
    let groups = alice.dead_letter_groups(&JobFilter::default()).await.unwrap();
    assert_eq!((groups.looked_at, groups.groups[0].count), (1, 1));
    let of_bob = JobFilter { principal: Some(Principal::new("bob").unwrap()), ..JobFilter::default() };
    let filter = DeadLetterFilter { jobs: of_bob, ..DeadLetterFilter::default() };
    assert_eq!(alice.retry_all(&filter, 10).await.unwrap().count, 0);
    assert_eq!(alice.retry_all(&DeadLetterFilter::default(), 10).await.unwrap().count, 1);
    assert_eq!(bob.dead_letters(&JobFilter::default(), None, 10).await.unwrap().items.len(), 2, "his are untouched");
}

#[tokio::test]
async fn what_is_submitted_through_a_caller_is_submitted_for_him() {
    let (application, alice, _) = callers(Client::new(memory()));
    let whose = async |id: JobId| application.find(id).await.unwrap().unwrap().spec.principal;
    let hers = Some(Principal::new("alice").unwrap());
    let chain = alice.enqueue(work()).when(result("").is("x"), work()).on_success(work()).submit().await.unwrap();
    let record = chain.record().await.unwrap();
    assert_eq!((record.spec.principal, record.on_success.unwrap().principal), (hers.clone(), hers.clone()));
    for step in alice.workflow_graph(chain.id()).await.unwrap().unwrap().steps {
        assert_eq!(whose(step.id).await, hers);
    }
    let batch = alice.batch().child(work()).submit().await.unwrap();
    assert_eq!(whose(batch.id()).await, hers, "also the job that stands for a batch");
    assert_eq!(whose(batch.children(None, 10).await.unwrap().items[0].id).await, hers);
    let schedule = alice.schedule(work()).every(later()).create().await.unwrap();
    let fired = application.run_schedule_now(schedule.id()).await.unwrap().unwrap();
    assert_eq!(whose(fired).await, hers, "whoever fires it");
    assert_eq!(whose(application.enqueue(work()).submit().await.unwrap().id()).await, None);
    let other = alice.enqueue(work()).principal("carol").submit().await.unwrap();
    assert_eq!(whose(other.id()).await.unwrap().as_str(), "carol", "unless it is for somebody else");
}

#[tokio::test]
async fn whom_a_caller_may_submit_for_is_for_the_authorizer_to_say() {
    let (application, alice, _) = own_jobs();
    let denied = alice.enqueue(work()).principal("bob").submit().await.unwrap_err();
    assert_eq!(denied.to_string(), "the job was refused: \"alice\" may not create a job of kind \"play\" for \"bob\"");
    let denied = alice.enqueue(work()).then(work().with(|step| step.principal("bob"))).submit().await.unwrap_err();
    assert!(matches!(denied, SubmitError::Denied(_)), "{denied:?}");
    assert_eq!(application.count_by_state().await.unwrap().len(), 0);
    application.as_principal("root").unwrap().enqueue(work()).principal("bob").submit().await.unwrap();
}

#[tokio::test]
async fn jobs_of_two_callers_are_not_submitted_together() {
    let (application, alice, bob) = own_jobs();
    for (client, other) in [(&alice, &bob), (&alice, &application), (&application, &alice)] {
        let refused = client.submit_all([client.enqueue(work()), other.enqueue(work())]).await.unwrap_err().to_string();
        assert!(refused.contains("`job[1]` was begun by a client that acts for somebody else"), "{refused}");
    }
    assert_eq!(application.count_by_state().await.unwrap().len(), 0);
}

#[tokio::test]
async fn what_is_nobodys_own_is_for_operators() {
    let (application, alice, _) = own_jobs();
    let queue = QueueName::default();
    assert_denied(alice.pause_queue(&queue).await, Action::Pause);
    assert_denied(alice.queues().await, Action::Read);
    assert_denied(alice.nodes().await, Action::Read);
    assert_denied(alice.queue_health().await, Action::Read);
    assert_denied(alice.resources().await, Action::Read);
    assert_denied(alice.breakers().await, Action::Read);
    let limit = ratchet_core::ResourceLimit::new("printer", 1).unwrap();
    assert_denied(alice.set_resource_limit(&limit).await, Action::Limit);
    assert_denied(alice.remove_resource_limit(&limit.name).await, Action::Limit);
    assert_denied(alice.signal("key").send().await.map_err(store_error), Action::Signal);
    assert_denied(alice.purge_archive(later()).await, Action::Purge);
    let root = application.as_principal("root").unwrap();
    assert!(root.pause_queue(&queue).await.unwrap());
    assert!(root.signal("key").send().await.unwrap().kept);
    assert_eq!(root.purge_archive(later()).await.unwrap(), 0);
}

#[tokio::test]
async fn a_signal_of_a_caller_names_him_and_nobody_else() {
    let (application, alice, _) = callers(Client::new(memory()));
    let job = application.enqueue(work()).await_signal("key", None).submit().await.unwrap().id();
    let refused = alice.signal_job(job).by("bob").send().await.unwrap_err().to_string();
    assert!(refused.contains("`by` is \"bob\", but this client acts for \"alice\""), "{refused}");
    assert_eq!(alice.signal_job(job).approve().send().await.unwrap().delivered, 1);
    let signal = application.awaited_signal(job).await.unwrap().unwrap().signal.unwrap();
    assert_eq!(signal.by.unwrap().as_str(), "alice");
}

struct Panics;

impl Authorizer for Panics {
    fn allows(&self, _caller: &Principal, _action: Action, _target: &Target<'_>) -> bool {
        panic!("an authorizer gone wrong")
    }

    fn scope(&self, _caller: &Principal) -> Scope {
        panic!("an authorizer gone wrong")
    }
}

/// May read what it is told of, and sees nothing in lists.
struct Blind;

impl Authorizer for Blind {
    fn allows(&self, _caller: &Principal, _action: Action, _target: &Target<'_>) -> bool {
        true
    }

    fn scope(&self, _caller: &Principal) -> Scope {
        Scope::Nothing
    }
}

#[tokio::test]
async fn an_authorizer_that_panics_or_says_so_shows_nothing() {
    async fn sees_nothing(application: Client) {
        let job = application.enqueue(Play::FailForGood).delay(later()).then(work()).submit().await.unwrap().id();
        application.batch().open().await.unwrap();
        application.schedule(work()).every(later()).create().await.unwrap();
        let alice = application.as_principal("alice").unwrap();
        assert!(alice.list(&JobFilter::default(), None, 10).await.unwrap().items.is_empty());
        assert!(alice.batches(None, 10).await.unwrap().items.is_empty());
        assert!(alice.workflows(None, 10).await.unwrap().items.is_empty());
        assert!(alice.schedules(&ScheduleFilter::default(), None, 10).await.unwrap().items.is_empty());
        assert!(alice.dead_letters(&JobFilter::default(), None, 10).await.unwrap().items.is_empty());
        assert_eq!(alice.retry_all(&DeadLetterFilter::default(), 10).await.unwrap().count, 0);
        assert_eq!(alice.count_by_state().await.unwrap().len(), 0);
        assert_eq!(application.find(job).await.unwrap().unwrap().state, JobState::Pending);
    }
    let panics = Client::new(memory()).with_authorizer(Panics);
    assert!(panics.as_principal("alice").unwrap().enqueue(work()).submit().await.is_err());
    sees_nothing(panics).await;
    sees_nothing(Client::new(memory()).with_authorizer(Blind)).await;
}

#[tokio::test]
async fn a_principal_is_checked() -> Result<(), InvalidInput> {
    let client = Client::new(MemoryStore::new(std::sync::Arc::new(ratchet_engine::SystemClock)));
    assert_eq!(client.principal(), None);
    let bob = client.as_principal("alice")?.as_principal("bob")?;
    assert_eq!(bob.principal().unwrap().as_str(), "bob", "a client is no cell, as the guide says");
    assert_eq!(client.as_principal("").unwrap_err().field(), "principal");
    assert_eq!(client.as_principal("x".repeat(256)).unwrap_err().field(), "principal");
    Ok(())
}

#[tokio::test]
async fn a_job_is_found_by_its_keys_by_those_who_may_read_it() {
    let (application, alice, bob) = own_jobs();
    let enqueue = bob.enqueue(work()).delay(later()).idempotency_key("once").business_key("order-17");
    let id = enqueue.submit().await.unwrap().id();
    let found = async |client: &Client| {
        let by_business_key = client.find_by_business_key("order-17").await.unwrap();
        let by_idempotency_key = client.find_by_idempotency_key("once").await.unwrap();
        (by_business_key.map(|job| job.id), by_idempotency_key.map(|job| job.id))
    };
    assert_eq!(found(&bob).await, (Some(id), Some(id)));
    assert_eq!(found(&application).await, (Some(id), Some(id)));
    assert_eq!(found(&alice).await, (None, None));
    assert!(application.cancel(id).await.unwrap());
    assert_eq!(found(&bob).await, (None, Some(id)), "its business key is free, its idempotency key never is");
    assert!(application.delete(id).await.unwrap());
    assert_eq!(found(&application).await, (None, None));
    assert_eq!(application.find_by_business_key("another").await.unwrap(), None);
    let error = application.find_by_idempotency_key("").await.unwrap_err();
    assert_eq!(*error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("`idempotency_key` is empty"), "{error}");
}
