//! Resources: limits that are set in the code, by hand, and looked at.

use ratchet_core::{Priority, ResourceLimit, ResourceName, ResourceRecord, Store, StoreError};

use crate::client::Client;
use crate::protect::authorizer::{Action, Target};

impl Client {
    /// Every resource that has a limit, or jobs that run with it.
    ///
    /// # Errors
    /// If the store cannot be asked.
    pub async fn resources(&self) -> Result<Vec<ResourceRecord>, StoreError> {
        self.demand(Action::Read, &Target::Resources)?;
        self.store().resources().await
    }

    /// Sets the limit of a resource by hand, for the whole cluster and at once. It stays, whatever the code of a node
    /// declares, until it is set again or [removed](Self::remove_resource_limit). Jobs that run already go on.
    ///
    /// # Errors
    /// [`Invalid`](ratchet_core::ErrorKind::Invalid) if the limit is out of bounds; nothing is written then.
    ///
    /// ```
    /// # use ratchet_core::{MemoryStore, ResourceLimit};
    /// # use ratchet_engine::Client;
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let client = Client::new(MemoryStore::manual().0);
    /// client.set_resource_limit(&ResourceLimit::new("printer", 2)?).await?;
    /// assert_eq!(client.resources().await?[0].in_use, 0);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn set_resource_limit(&self, limit: &ResourceLimit) -> Result<(), StoreError> {
        limit.check().map_err(|error| StoreError::refused("setting a limit", error))?;
        self.demand(Action::Limit, &Target::Resource(&limit.name))?;
        self.store().set_resource(limit).await?;
        self.look_again();
        Ok(())
    }

    /// Removes the limit of a resource: its jobs run freely, until a node starts that declares one; `false` if there was
    /// none.
    ///
    /// # Errors
    /// If the store cannot be asked.
    pub async fn remove_resource_limit(&self, name: &ResourceName) -> Result<bool, StoreError> {
        self.demand(Action::Limit, &Target::Resource(name))?;
        let removed = self.store().remove_resource(name).await?;
        self.look_again();
        Ok(removed)
    }

    /// More may run than before.
    fn look_again(&self) {
        self.wake().work();
        self.announce(Priority::default());
    }
}

/// Sets the limits that the code of this node declares.
pub(crate) async fn declare_resources(
    store: &dyn Store,
    limits: impl IntoIterator<Item = &ResourceLimit>,
) -> Result<(), StoreError> {
    for limit in limits {
        store.declare_resource(limit).await?;
    }
    Ok(())
}
