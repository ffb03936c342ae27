//! The two tasks that move text: one hears, one speaks.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use ratchet_coordinator::{Failures, Hub};
use redis::aio::{MultiplexedConnection, PubSubSink, PubSubStream};
use redis::{AsyncConnectionConfig, Client, RedisError};
use tokio::sync::{Notify, oneshot, watch};
use tokio::time::timeout;

/// How long an attempt to connect may take, and how long a question may wait for its answer.
const CONNECT_MAX: Duration = Duration::from_secs(2);
const ANSWER_MAX: Duration = Duration::from_secs(1);
/// How long what waits may take to be sent when the coordinator closes.
const CLOSE_MAX: Duration = Duration::from_secs(5);
/// A connection that held for so long was a good one: the next pause begins small again.
const HELD_MIN: Duration = Duration::from_secs(1);

pub(crate) struct Link {
    pub(crate) client: Client,
    pub(crate) channel: String,
    pub(crate) hub: Hub,
    pub(crate) ping_every: Duration,
    /// Becomes true, or loses its sender, when the coordinator closes.
    pub(crate) closing: watch::Receiver<bool>,
    /// Told when the server is heard again, so that whoever waits to speak need not wait out its pause.
    pub(crate) back: Notify,
}

type Trouble = Box<dyn std::error::Error + Send + Sync>;

impl Link {
    /// Moves text until the coordinator is closed. `first` is told when the first attempt has ended, well or not.
    pub(crate) async fn run(self, first: oneshot::Sender<()>) {
        let mut closing = self.closing.clone();
        let closed = async {
            // A sender that is gone closes too.
            let _ = closing.wait_for(|closing| *closing).await;
            tokio::time::sleep(CLOSE_MAX).await;
        };
        tokio::select! {
            () = self.speak() => {}
            () = closed => {}
            never = self.hear(first) => match never {},
        }
    }

    async fn hear(&self, first: oneshot::Sender<()>) -> Infallible {
        let mut failures = Failures::default();
        let mut first = Some(first);
        let mut was_connected = false;
        loop {
            let subscribed = self.subscribe().await;
            let connected_at = Instant::now();
            if subscribed.is_ok() {
                if was_connected {
                    self.hub.reconnected();
                    tracing::info!(channel = self.channel, "Redis is back");
                }
                was_connected = true;
                self.back.notify_one();
            } else {
                // Before anybody hears of the first try: the metrics tell how it went.
                self.hub.transport_failed();
            }
            if let Some(first) = first.take() {
                // Whoever connected may have gone away.
                let _ = first.send(());
            }
            let trouble = match subscribed {
                Ok((sink, stream)) => {
                    let trouble = self.read(sink, stream).await;
                    self.hub.transport_failed();
                    trouble
                }
                Err(trouble) => trouble,
            };
            if was_connected && connected_at.elapsed() >= HELD_MIN {
                failures.forget();
            }
            if failures.one_more() {
                tracing::warn!(
                    channel = self.channel,
                    error = &*trouble as &dyn std::error::Error,
                    "hints from Redis are missing; work of other nodes is found by polling until it is back"
                );
            }
            tokio::time::sleep(failures.pause(fastrand::f64())).await;
        }
    }

    async fn subscribe(&self) -> Result<(PubSubSink, PubSubStream), Trouble> {
        let connecting = async {
            let (mut sink, stream) = self.client.get_async_pubsub().await?.split();
            sink.subscribe(&self.channel).await?;
            Ok::<_, RedisError>((sink, stream))
        };
        Ok(timeout(CONNECT_MAX, connecting).await??)
    }

    /// Hands on what comes until the connection is lost.
    async fn read(&self, mut sink: PubSubSink, mut stream: PubSubStream) -> Trouble {
        let listening = async {
            while let Some(message) = stream.next().await {
                // What is not even text is handed on as text that cannot be read, to be rejected and counted.
                self.hub.incoming(&String::from_utf8_lossy(message.get_payload_bytes()));
            }
            "the server closed the connection".into()
        };
        let asking = async {
            loop {
                tokio::time::sleep(self.ping_every).await;
                match timeout(ANSWER_MAX, sink.ping::<redis::Value>()).await {
                    Ok(Ok(_)) => {}
                    Ok(Err(error)) => return error.into(),
                    Err(late) => return late.into(),
                }
            }
        };
        tokio::select! {
            trouble = listening => trouble,
            trouble = asking => trouble,
        }
    }

    /// Sends what the hub has to say until it is closed.
    async fn speak(&self) {
        let mut connection = None;
        let mut failures = Failures::default();
        let mut closing = self.closing.clone();
        while let Some(texts) = self.hub.next_outgoing().await {
            while let Err(trouble) = self.publish(&mut connection, &texts).await {
                connection = None;
                self.hub.transport_failed();
                if failures.one_more() {
                    tracing::warn!(
                        channel = self.channel,
                        error = &*trouble as &dyn std::error::Error,
                        "hints cannot be sent to Redis; other nodes find the work by polling"
                    );
                }
                tokio::select! {
                    () = tokio::time::sleep(failures.pause(fastrand::f64())) => {}
                    () = self.back.notified() => {}
                    // There is no time to wait for a server that is away.
                    _ = closing.wait_for(|closing| *closing) => return,
                }
            }
            failures.forget();
        }
    }

    async fn publish(&self, connection: &mut Option<MultiplexedConnection>, texts: &[String]) -> Result<(), Trouble> {
        let connection = match connection {
            Some(connection) => connection,
            empty => {
                let config = AsyncConnectionConfig::new()
                    .set_connection_timeout(Some(CONNECT_MAX))
                    .set_response_timeout(Some(ANSWER_MAX));
                empty.insert(self.client.get_multiplexed_async_connection_with_config(&config).await?)
            }
        };
        let mut batch = redis::pipe();
        for text in texts {
            batch.cmd("PUBLISH").arg(&self.channel).arg(text).ignore();
        }
        Ok(batch.query_async::<()>(connection).await?)
    }
}
