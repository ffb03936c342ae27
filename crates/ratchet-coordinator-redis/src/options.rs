//! Where the server is, and on which channel nodes meet.

use std::time::Duration;

use redis::Client;

use crate::coordinator::RedisCoordinator;

const CHANNEL_DEFAULT: &str = "ratchet_wakeup";
const CHANNEL_CHARS_MAX: usize = 200;
const PING_DEFAULT: Duration = Duration::from_secs(15);

/// Options of a [`RedisCoordinator`]; [`connect`](Self::connect) makes it.
#[derive(Clone)]
#[must_use = "nothing is connected before .connect()"]
pub struct RedisOptions {
    url: String,
    channel: String,
    suffix: Option<String>,
    ping_every: Duration,
}

/// Why there is no coordinator. A server that cannot be reached is no reason: it may come later.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The address cannot be understood. It is not shown, because it may hold a password.
    #[error("the address of the Redis server is not like redis://[user:password@]host[:port]")]
    Url(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The channel's name cannot be used.
    #[error("the channel {channel:?} is empty, longer than {CHANNEL_CHARS_MAX} characters or has spaces in it")]
    Channel {
        /// The name, with its suffix.
        channel: String,
    },
    /// The operating system refused a thread or a runtime.
    #[error("the thread that speaks with Redis could not be started: {0}")]
    Thread(std::io::Error),
}

impl RedisOptions {
    pub(crate) fn new(url: impl Into<String>) -> Self {
        Self { url: url.into(), channel: CHANNEL_DEFAULT.to_owned(), suffix: None, ping_every: PING_DEFAULT }
    }

    /// The channel on which nodes meet, `ratchet_wakeup` by default.
    pub fn channel(mut self, channel: impl Into<String>) -> Self {
        self.channel = channel.into();
        self
    }

    /// Is put behind the channel's name, to keep installations on one server apart. The number of a database does not:
    /// Redis carries messages across all of them.
    pub fn suffix(mut self, suffix: impl Into<String>) -> Self {
        self.suffix = Some(suffix.into());
        self
    }

    /// How often the server is asked whether it still listens, so that a connection that died without a word is noticed.
    /// Fifteen seconds by default.
    pub fn ping_every(mut self, every: Duration) -> Self {
        self.ping_every = every;
        self
    }

    /// Starts the coordinator and waits until it has subscribed, or has failed to once: it goes on trying.
    ///
    /// # Errors
    /// [`ConnectError`] for an address or a channel that cannot be used.
    pub async fn connect(self) -> Result<RedisCoordinator, ConnectError> {
        let channel = match &self.suffix {
            Some(suffix) => format!("{}_{suffix}", self.channel),
            None => self.channel,
        };
        let unfit = |c: char| c.is_whitespace() || c.is_control();
        if channel.is_empty() || channel.chars().count() > CHANNEL_CHARS_MAX || channel.contains(unfit) {
            return Err(ConnectError::Channel { channel });
        }
        let client = Client::open(self.url).map_err(|error| ConnectError::Url(error.into()))?;
        RedisCoordinator::start(client, channel, self.ping_every).await
    }
}

impl std::fmt::Debug for RedisOptions {
    /// Without the address, which may hold a password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisOptions")
            .field("channel", &self.channel)
            .field("suffix", &self.suffix)
            .finish_non_exhaustive()
    }
}
