use async_trait::async_trait;

use crate::claim::Fence;
use crate::error::StoreError;
use crate::id::NodeId;
use crate::name::ResourceName;
use crate::resource::{ResourceLimit, ResourceRecord};

/// Limits of resources, and the permits of jobs that run under them.
///
/// A claim takes the permit and the job atomically: no job is ever claimed without its permit, and no more permits are out
/// than the limit allows. A permit belongs to the attempt. It ends with a settlement that
/// [says so](crate::Settlement::ends_permit), by [`release_permits`](Self::release_permits) or with its node, whatever
/// becomes of the job meanwhile. Setting or lowering a limit takes no permit from a running job.
#[async_trait]
pub trait ResourceStore: Send + Sync {
    /// Sets the limit that code declares, unless an operator has set one.
    async fn declare_resource(&self, limit: &ResourceLimit) -> Result<(), StoreError>;

    /// Sets a limit for an operator: it stays until it is set again or removed.
    async fn set_resource(&self, limit: &ResourceLimit) -> Result<(), StoreError>;

    /// Removes a limit. Returns whether there was one.
    async fn remove_resource(&self, name: &ResourceName) -> Result<bool, StoreError>;

    /// Returns every resource that has a limit or permits that are out, by name.
    async fn resources(&self) -> Result<Vec<ResourceRecord>, StoreError>;

    /// Returns the attempts for which a node has permits, whatever has become of their jobs.
    async fn permits_of(&self, node: NodeId) -> Result<Vec<Fence>, StoreError>;

    /// Ends the permits of attempts that end without a settlement. Attempts without a permit are ignored.
    async fn release_permits(&self, attempts: &[Fence]) -> Result<(), StoreError>;
}
