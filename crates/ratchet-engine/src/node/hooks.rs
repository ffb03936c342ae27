//! Who a node is, and what runs when it starts and stops.

use std::future::Future;

use async_trait::async_trait;
use ratchet_core::{InvalidInput, NodeName};

use crate::guard;
use crate::job::failure::BoxError;
use crate::node::start::StartError;
use crate::observe::metrics::Meter;

/// Gives a node its name: a label for people, which need not be unique. A text is a name that is known already.
///
/// ```
/// use ratchet_engine::NodeIdentity;
///
/// assert_eq!("web-1".node_name().unwrap().as_str(), "web-1");
/// ```
pub trait NodeIdentity: Send + Sync {
    /// Returns the node's name.
    ///
    /// # Errors
    /// Names what is wrong with it; the node does not start then.
    fn node_name(&self) -> Result<NodeName, InvalidInput>;
}

impl NodeIdentity for &str {
    fn node_name(&self) -> Result<NodeName, InvalidInput> {
        NodeName::new(self)
    }
}

impl NodeIdentity for String {
    fn node_name(&self) -> Result<NodeName, InvalidInput> {
        NodeName::new(self)
    }
}

impl NodeIdentity for NodeName {
    fn node_name(&self) -> Result<NodeName, InvalidInput> {
        Ok(self.clone())
    }
}

/// The machine's host name and the process id.
#[derive(Debug, Clone, Copy, Default)]
pub struct HostIdentity;

impl NodeIdentity for HostIdentity {
    fn node_name(&self) -> Result<NodeName, InvalidInput> {
        let host = std::env::var("HOSTNAME")
            .ok()
            .or_else(|| std::fs::read_to_string("/etc/hostname").ok())
            .map(|host| host.trim().chars().filter(|c| !c.is_control()).take(48).collect::<String>())
            .filter(|host| !host.is_empty())
            .unwrap_or_else(|| "node".to_owned());
        NodeName::new(format!("{host}:{}", std::process::id()))
    }
}

/// Runs code around a node's life. Hooks are paired: whatever happens, a hook whose `before_start` was called has its
/// `after_stop` called. A hook that fails in `before_start` keeps the node from starting; later failures are logged. A panic is
/// a failure.
#[async_trait]
pub trait LifecycleHook: Send + Sync {
    /// Before the node registers and claims anything; the place for migrations.
    async fn before_start(&self) -> Result<(), BoxError> {
        Ok(())
    }

    /// After the node has begun to claim.
    async fn after_start(&self) -> Result<(), BoxError> {
        Ok(())
    }

    /// Before the node drains.
    async fn before_stop(&self) -> Result<(), BoxError> {
        Ok(())
    }

    /// After everything has ended, also when starting failed.
    async fn after_stop(&self) -> Result<(), BoxError> {
        Ok(())
    }
}

/// Hooks are called in order at the start and in reverse order at the stop.
pub(crate) struct Hooks {
    pub(crate) hooks: Vec<Box<dyn LifecycleHook>>,
    pub(crate) meter: Meter,
}

impl Hooks {
    pub(crate) async fn before_start(&self) -> Result<(), StartError> {
        for (at, hook) in self.hooks.iter().enumerate() {
            if let Err(error) = self.call(async { hook.before_start().await }).await {
                // Paired: every hook that was called has its after_stop.
                for begun in self.hooks[..=at].iter().rev() {
                    logged("after_stop", self.call(async { begun.after_stop().await }).await);
                }
                return Err(StartError::Hook(error));
            }
        }
        Ok(())
    }

    pub(crate) async fn after_start(&self) {
        for hook in &self.hooks {
            logged("after_start", self.call(async { hook.after_start().await }).await);
        }
    }

    pub(crate) async fn before_stop(&self) {
        for hook in self.hooks.iter().rev() {
            logged("before_stop", self.call(async { hook.before_stop().await }).await);
        }
    }

    pub(crate) async fn after_stop(&self) {
        for hook in self.hooks.iter().rev() {
            logged("after_stop", self.call(async { hook.after_stop().await }).await);
        }
    }

    /// Calls a hook; one that panics has failed.
    async fn call(&self, hook: impl Future<Output = Result<(), BoxError>>) -> Result<(), BoxError> {
        let called = guard::run(&self.meter, guard::LIFECYCLE_HOOK, hook).await;
        called.unwrap_or_else(|panic| Err(format!("the hook panicked: {}", panic.text()).into()))
    }
}

fn logged(which: &str, result: Result<(), BoxError>) {
    if let Err(error) = result {
        tracing::error!(hook = which, error = &*error as &dyn std::error::Error, "a lifecycle hook failed");
    }
}
