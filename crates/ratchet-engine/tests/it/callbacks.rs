use std::sync::{Arc, Mutex};

use ratchet_core::{Backoff, JobType, Origin};
use ratchet_engine::{Failure, Job, JobContext, JobExt, Requirement};
use serde::{Deserialize, Serialize};

use crate::support::{Play, Stage, eventually, memory, quick};

/// Origin, retries and note of each callback.
type Told = (Origin, u32, Option<String>);

#[derive(Debug, Default, Clone)]
struct Heard(Arc<Mutex<Vec<Told>>>);

#[derive(Serialize, Deserialize)]
struct Report;

impl Job for Report {
    const KIND: &'static str = "report";
    type Output = ();

    fn requires() -> Vec<Requirement> {
        vec![Requirement::state::<Heard>()]
    }

    async fn run(self, ctx: JobContext) -> Result<(), Failure> {
        let origin = ctx.origin().expect("it is a callback").clone();
        let note = ctx.param("note").map(str::to_owned);
        ctx.state::<Heard>().0.lock().unwrap().push((origin, ctx.job().spec.max_retries, note));
        Ok(())
    }
}

#[tokio::test]
async fn callbacks_are_jobs_that_know_how_the_first_one_ended() {
    let (stage, heard) = (Stage::default(), Heard::default());
    let ratchet = quick(&stage).job::<Report>().state(heard.clone()).store(memory()).start().await.unwrap();
    let won = ratchet
        .enqueue(Play::Return("won".into()))
        .param("customer", "7")
        .on_success(Report.with(|step| step.max_retries(7).param("note", "good")))
        .on_failure(Report)
        .submit()
        .await
        .unwrap();
    won.wait().await.unwrap();
    eventually("the success callback", async || heard.0.lock().unwrap().len() == 1).await;
    {
        let heard = heard.0.lock().unwrap();
        let (origin, max_retries, note) = &heard[0];
        assert_eq!((origin.job_id, origin.kind.as_str()), (won.id(), "play"));
        assert_eq!(origin.params.get("customer").map(String::as_str), Some("7"));
        assert_eq!(origin.result.as_ref().unwrap().decode::<String>().unwrap(), "won");
        assert_eq!((*max_retries, note.as_deref()), (7, Some("good")));
    }
    let lost = ratchet
        .enqueue(Play::FailTimes(9))
        .max_retries(1)
        .backoff(Backoff::None)
        .on_success(Report)
        .on_failure(Report)
        .submit()
        .await
        .unwrap();
    lost.wait().await.unwrap();
    eventually("the failure callback", async || heard.0.lock().unwrap().len() == 2).await;
    assert_eq!(heard.0.lock().unwrap()[1].0.error.as_deref(), Some("Error: attempt 2 broke"));
    let page = ratchet.list(&ratchet_core::page::JobFilter::default(), None, 10).await.unwrap();
    let callbacks = page.items.iter().filter(|job| job.job_type == JobType::Callback).count();
    assert_eq!(callbacks, 2, "one for each end, none for the retry");
}
