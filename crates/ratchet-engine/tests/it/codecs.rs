//! Arguments, results and signals that a codec writes.

use std::time::Duration;

use ratchet_core::store::JobStore as _;
use ratchet_core::{BatchSummary, JobId, JobState, JobType, MemoryStore};
use ratchet_engine::{
    BoxError, Client, Failure, FromPrev as _, Job, JobContext, JobExt as _, Part, PayloadCodec, Prev, Ratchet,
    RatchetBuilder, ResultCondition, ResultError, SubmitError, conditions, result,
};
use serde::{Deserialize, Serialize};

use crate::support::{Play, Stage, memory, quick};

/// Turns letters by so many places: enough to see who reads what.
struct Caesar(u8);

impl Caesar {
    fn turned(text: &str, by: u8) -> String {
        let turn = |c: char| match c {
            'a'..='z' => char::from((c as u8 - b'a' + by) % 26 + b'a'),
            other => other,
        };
        text.chars().map(turn).collect()
    }
}

impl PayloadCodec for Caesar {
    fn name(&self) -> &str {
        if self.0 == 3 { "caesar" } else { "cleopatra" }
    }

    fn covers(&self, part: Part<'_>) -> bool {
        !matches!(part, Part::Result(kind) if kind.as_str() == "in-the-open")
    }

    fn encode(&self, json: &str) -> Result<String, BoxError> {
        if json.contains("unspeakable") { Err("no".into()) } else { Ok(Self::turned(json, self.0)) }
    }

    fn decode(&self, _name: &str, data: &str) -> Result<String, BoxError> {
        if data.contains('?') { Err("a question mark".into()) } else { Ok(Self::turned(data, 26 - self.0)) }
    }
}

/// Says its word, with those of the steps before, of the job that it is a callback of, and of its signal.
#[derive(Serialize, Deserialize)]
struct Say(String);

impl Job for Say {
    const KIND: &'static str = "say";
    type Output = String;

    async fn run(self, ctx: JobContext) -> Result<String, Failure> {
        let mut words = vec![self.0];
        if ctx.payload().as_str() != format!("{:?}", words[0]) {
            return Err(Failure::do_not_retry("the context has another payload", "a bug"));
        }
        if !ctx.inputs().is_empty() {
            // A join has a list, a step after one other has that one's result.
            match Prev::<Vec<String>>::from_prev(&ctx) {
                Ok(Prev(before)) => words.extend(before),
                Err(_) => words.push(Prev::<String>::from_prev(&ctx)?.0),
            }
        }
        words.extend(ctx.origin().and_then(|origin| origin.result.as_ref()).map(|result| result.decode().unwrap()));
        words.extend(ctx.signal().map(|signal| signal.payload::<String>().unwrap()));
        Ok(words.join(" "))
    }
}

/// The same, with a result in the open.
#[derive(Serialize, Deserialize)]
struct SayOpenly(String);

impl Job for SayOpenly {
    const KIND: &'static str = "in-the-open";
    type Output = String;

    async fn run(self, _ctx: JobContext) -> Result<String, Failure> {
        Ok(self.0)
    }
}

struct IsLong;

impl ResultCondition for IsLong {
    const KIND: &'static str = "ratchet.when.is-long";
    type Input = String;

    fn holds(text: &String) -> Result<bool, Failure> {
        Ok(text.len() > 3)
    }
}

fn say(word: &str) -> Say {
    Say(word.to_owned())
}

fn node(store: &MemoryStore) -> RatchetBuilder {
    let builder = quick(&Stage::default()).store(store.clone()).job::<Say>().job::<SayOpenly>();
    builder.jobs(conditions![IsLong])
}

async fn coded() -> (MemoryStore, Ratchet) {
    let store = memory();
    let ratchet = node(&store).payload_codec(Caesar(3)).start().await.unwrap();
    (store, ratchet)
}

async fn stored(store: &MemoryStore, id: JobId) -> ratchet_core::JobRecord {
    store.find(&[id]).await.unwrap().remove(0)
}

/// The job of a step that follows, by what it says first.
async fn step(ratchet: &Ratchet, first: JobId, at: usize) -> ratchet_engine::JobHandle<String> {
    let graph = ratchet.workflow_graph(first).await.unwrap().unwrap();
    let own: Vec<_> = graph.steps.iter().filter(|step| step.job_type != JobType::Condition).collect();
    ratchet.handle(own[at].id)
}

#[tokio::test]
async fn arguments_and_results_are_stored_as_the_codec_writes_them() {
    let (store, ratchet) = coded().await;
    let job = ratchet.enqueue(say("hello")).on_success(say("after")).submit().await.unwrap();
    assert_eq!(job.result().await.unwrap(), "hello");
    let record = stored(&store, job.id()).await;
    let sealed = |word: &str| format!(r#"{{"$codec":"caesar","data":"\"{word}\""}}"#);
    assert_eq!(record.spec.payload.as_str(), sealed("khoor"));
    assert_eq!(record.result.clone().unwrap().as_str(), sealed("khoor"));
    assert_eq!(record.on_success.unwrap().payload.as_str(), sealed("diwhu"));
    assert_eq!(ratchet.decoded(&record.result.unwrap()).unwrap().as_str(), "\"hello\"");
    let openly = ratchet.enqueue(SayOpenly("hello".into())).submit().await.unwrap();
    assert_eq!(openly.result().await.unwrap(), "hello");
    assert_eq!(stored(&store, openly.id()).await.result.unwrap().as_str(), "\"hello\"", "the codec does not cover it");
}

#[tokio::test]
async fn steps_callbacks_and_signals_hand_over_what_was_meant() {
    let (store, ratchet) = coded().await;
    let chain = ratchet.enqueue(say("one")).then(say("two")).submit().await.unwrap();
    assert_eq!(step(&ratchet, chain.id(), 1).await.result().await.unwrap(), "two one");
    let mut events = ratchet.events();
    let job = ratchet.enqueue(say("first")).on_success(say("then")).submit().await.unwrap();
    let told = crate::support::event(&mut events, |e| e.job_type == JobType::Callback).await;
    assert_eq!(ratchet.handle::<String>(told.job_id).result().await.unwrap(), "then first");
    job.result().await.unwrap();
    let waiting = ratchet.enqueue(say("well")).await_signal("key", None).submit().await.unwrap();
    ratchet.signal_job(waiting.id()).payload("done").send().await.unwrap();
    assert_eq!(waiting.result().await.unwrap(), "well done");
    let signal = Client::new(store).awaited_signal(waiting.id()).await.unwrap().unwrap().signal.unwrap();
    assert_eq!(signal.payload.as_str(), r#"{"$codec":"caesar","data":"\"grqh\""}"#);
}

#[tokio::test]
async fn conditions_look_at_what_is_meant_and_not_at_what_is_stored() {
    let (store, ratchet) = coded().await;
    let first = || ratchet.enqueue(say("hello"));
    let both = first().when(result("").is("hello"), say("yes")).when(result("").is("khoor"), say("no"));
    let both = both.submit().await.unwrap();
    assert_eq!(step(&ratchet, both.id(), 1).await.result().await.unwrap(), "yes hello");
    let no = step(&ratchet, both.id(), 2).await.wait().await.unwrap();
    assert_eq!(no.state, JobState::Canceled);
    // Of exclusive branches the first that holds, asked one after the other, with a function among them.
    let one = first().exclusive().when(result("").is("x"), say("a")).when(IsLong, say("b"));
    let one = one.when(result("").exists(), say("c")).submit().await.unwrap();
    assert_eq!(step(&ratchet, one.id(), 2).await.result().await.unwrap(), "b hello");
    for other in [1, 3] {
        assert_eq!(step(&ratchet, one.id(), other).await.wait().await.unwrap().state, JobState::Canceled);
    }
    // No step lets anything slip: what a condition says is in the open.
    for id in [both.id(), one.id()] {
        for step in ratchet.workflow_graph(id).await.unwrap().unwrap().steps {
            let text = format!("{:?}", stored(&store, step.id).await.result);
            assert!(!text.contains("hello"), "{text}");
        }
    }
    // The store judges what it can read.
    let openly = ratchet.enqueue(SayOpenly("x".into())).when(result("").is("x"), say("yes")).submit().await.unwrap();
    assert_eq!(ratchet.workflow_graph(openly.id()).await.unwrap().unwrap().steps.len(), 2);
    assert_eq!(step(&ratchet, openly.id(), 1).await.result().await.unwrap(), "yes x");
}

#[tokio::test]
async fn a_join_of_any_behind_conditions_gets_the_results_and_leaks_none() {
    let (store, ratchet) = coded().await;
    let workflow = ratchet
        .workflow()
        .step("a", say("hello"))
        .step("b", say("no"))
        .step("join", say("got"))
        .edge_when::<String>("a", "join", result("").is("hello"))
        .edge_when::<String>("b", "join", IsLong)
        .join("join", ratchet_core::flow::Join::Any)
        .submit()
        .await
        .unwrap();
    assert_eq!(workflow.step::<String>("join").unwrap().result().await.unwrap(), "got hello");
    for step in workflow.graph().await.unwrap().steps {
        let text = format!("{:?}", stored(&store, step.id).await.result);
        assert!(!text.contains("hello"), "{text}");
    }
}

#[tokio::test]
async fn batches_count_and_judge_as_ever() {
    let (_, ratchet) = coded().await;
    let batch = ratchet.batch().child(say("a")).child(say("b")).then_on_batch_success(Play::Return("x".into()));
    let batch = batch.when_failure_count(1, Play::Return("y".into())).submit().await.unwrap();
    assert_eq!(batch.summary().await.unwrap().succeeded, 2);
    let job = ratchet.handle::<BatchSummary>(batch.id());
    assert_eq!(job.result().await.unwrap().total, 2);
    let streamed = ratchet.batch().stream(futures_util::stream::iter([say("c")])).await.unwrap();
    assert_eq!(streamed.summary().await.unwrap().succeeded, 1);
    let graph = ratchet.workflow_graph(batch.id()).await.unwrap().unwrap();
    assert_eq!(ratchet.handle::<String>(graph.steps[1].id).result().await.unwrap(), "x");
    assert_eq!(graph.steps.len(), 3, "the store reads the summary itself");
}

#[tokio::test]
async fn schedules_fire_what_was_meant() {
    let (store, ratchet) = coded().await;
    let every = Duration::from_mins(10);
    let schedule = ratchet.schedule(say("tick").with(|step| step.max_retries(0))).every(every).create().await.unwrap();
    let fired = schedule.run_now::<String>().await.unwrap();
    assert_eq!(fired.result().await.unwrap(), "tick");
    assert!(stored(&store, fired.id()).await.spec.payload.as_str().contains("wlfn"), "written once, and not twice");
}

#[tokio::test]
async fn what_was_stored_before_there_was_a_codec_is_still_read() {
    let store = memory();
    let plain = Client::new(store.clone());
    let job = plain.enqueue(say("old")).then(say("older")).submit().await.unwrap();
    let ratchet = node(&store).payload_codec(Caesar(3)).start().await.unwrap();
    assert_eq!(ratchet.handle::<String>(job.id()).result().await.unwrap(), "old");
    assert_eq!(step(&ratchet, job.id(), 1).await.result().await.unwrap(), "older old");
}

#[tokio::test]
async fn what_cannot_be_decoded_fails_the_job_for_good_and_says_why() {
    let store = memory();
    let check = async |builder: RatchetBuilder, codec: Caesar, word: &str, expected: &str| {
        let client = Client::new(store.clone()).with_payload_codec(codec);
        let job = client.enqueue(say(word)).submit().await.unwrap();
        let ratchet = builder.start().await.unwrap();
        let failed = job.wait().await.unwrap();
        assert_eq!((failed.state, failed.attempts), (JobState::Failed, 1), "without another try");
        let error = failed.last_error.unwrap();
        assert!(error.contains("the arguments of this job of kind \"say\" cannot be decoded"), "{error}");
        assert!(error.contains(expected), "{error}");
        ratchet.shutdown().await;
    };
    check(node(&store), Caesar(3), "x", "by the codec \"caesar\", and there is none here").await;
    let other = node(&store).payload_codec(Caesar(5));
    check(other, Caesar(3), "x", "by the codec \"caesar\", which the one here, \"cleopatra\", does not read").await;
    let same = node(&store).payload_codec(Caesar(3));
    check(same, Caesar(3), "why?", "could not decode it: a question mark").await;
}

#[tokio::test]
async fn a_result_that_cannot_be_read_is_no_wrong_result() {
    let (store, ratchet) = coded().await;
    let job = ratchet.enqueue(say("hello")).submit().await.unwrap();
    job.result().await.unwrap();
    let blind = Client::new(store).handle::<String>(job.id());
    let error = blind.result().await.unwrap_err();
    assert!(matches!(error, ResultError::Undecodable { .. }), "{error:?}");
    assert_eq!(blind.status().await.unwrap(), JobState::Succeeded);
}

#[tokio::test]
async fn what_cannot_be_encoded_is_refused_or_fails_the_job() {
    let (store, ratchet) = coded().await;
    let refused = ratchet.enqueue(say("unspeakable")).submit().await.unwrap_err();
    assert!(matches!(refused, SubmitError::Invalid(_)), "{refused:?}");
    assert!(refused.to_string().contains("`payload` could not be written by the payload codec: no"), "{refused}");
    let refused = ratchet.enqueue(say("x")).on_failure(say("unspeakable")).submit().await.unwrap_err().to_string();
    assert!(refused.contains("`on_failure.payload`"), "{refused}");
    let refused = ratchet.signal("key").payload("unspeakable").send().await.unwrap_err().to_string();
    assert!(refused.contains("`signal payload`"), "{refused}");
    assert_eq!(ratchet.count_by_state().await.unwrap().len(), 0);
    let plain = Client::new(store);
    let job = plain.enqueue(say("unspeakable")).submit().await.unwrap();
    let failed = job.wait().await.unwrap();
    assert_eq!((failed.state, failed.attempts), (JobState::Failed, 1));
    assert!(failed.last_error.unwrap().contains("`result` could not be written by the payload codec"));
}
