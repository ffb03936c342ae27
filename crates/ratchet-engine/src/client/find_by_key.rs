//! Looking up jobs by the keys that their submitter chose.

use ratchet_core::{BusinessKey, IdempotencyKey, InvalidInput, JobId, JobRecord, StoreError};

use crate::client::Client;

impl Client {
    /// Returns the live job that holds a business key; `None` if none does.
    ///
    /// # Errors
    /// [`Invalid`](ratchet_core::ErrorKind::Invalid) if the key is empty or longer than 255 characters.
    pub async fn find_by_business_key(&self, key: impl AsRef<str>) -> Result<Option<JobRecord>, StoreError> {
        let key = BusinessKey::new(key).map_err(refused)?;
        let holder = self.store().find_by_business_key(&key).await?;
        self.find_holder(holder).await
    }

    /// Returns the first job that was submitted with an idempotency key, archived or not; `None` if there was none, or if it
    /// was deleted. Keys never expire and are shared by all kinds.
    ///
    /// ```
    /// # use ratchet_core::{MemoryStore, StoreError};
    /// # use ratchet_engine::{Client, SystemClock};
    /// # async fn find() -> Result<(), StoreError> {
    /// # let client = Client::new(MemoryStore::new(std::sync::Arc::new(SystemClock)));
    /// if let Some(job) = client.find_by_idempotency_key("order-17").await? {
    ///     println!("order 17 was submitted before, as {}", job.id);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Invalid`](ratchet_core::ErrorKind::Invalid) if the key is empty or longer than 255 characters.
    pub async fn find_by_idempotency_key(&self, key: impl AsRef<str>) -> Result<Option<JobRecord>, StoreError> {
        let key = IdempotencyKey::new(key).map_err(refused)?;
        let first = self.store().find_by_idempotency_key(&key).await?;
        self.find_holder(first).await
    }

    async fn find_holder(&self, id: Option<JobId>) -> Result<Option<JobRecord>, StoreError> {
        match id {
            Some(id) => self.find(id).await,
            None => Ok(None),
        }
    }
}

fn refused(problem: InvalidInput) -> StoreError {
    StoreError::refused("finding a job by its key", problem)
}
