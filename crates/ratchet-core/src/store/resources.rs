use async_trait::async_trait;

use crate::claim::Fence;
use crate::error::StoreError;
use crate::id::NodeId;
use crate::name::ResourceName;
use crate::resource::{ResourceLimit, ResourceRecord};

/// Limits of resources, and the permits of jobs that run with them.
///
/// A claim takes the permit together with the job, so that no job is ever claimed without one, and never more are out than
/// the limit says. The permit is the attempt's: it ends with a settlement that [says so](crate::Settlement::ends_permit),
/// by [`release_permits`](Self::release_permits), or with its node, whatever else becomes of the job meanwhile. A limit
/// that is set or lowered takes nothing away from jobs that run.
#[async_trait]
pub trait ResourceStore: Send + Sync {
    /// Sets the limit that the code declares, unless one was set by hand.
    async fn declare_resource(&self, limit: &ResourceLimit) -> Result<(), StoreError>;

    /// Sets a limit by hand: it stays until it is set again or removed.
    async fn set_resource(&self, limit: &ResourceLimit) -> Result<(), StoreError>;

    /// Removes a limit; `false` if there was none.
    async fn remove_resource(&self, name: &ResourceName) -> Result<bool, StoreError>;

    /// Every resource that has a limit or permits that are out, by name.
    async fn resources(&self) -> Result<Vec<ResourceRecord>, StoreError>;

    /// The attempts for which a node has permits, whatever has become of their jobs.
    async fn permits_of(&self, node: NodeId) -> Result<Vec<Fence>, StoreError>;

    /// Ends the permits of attempts that end without a settlement; those that have none are passed over.
    async fn release_permits(&self, attempts: &[Fence]) -> Result<(), StoreError>;
}
