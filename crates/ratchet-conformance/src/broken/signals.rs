use ratchet_core::page::PAGE_LIMIT_MAX;
use ratchet_core::signal::{Delivery, SignalTarget};
use ratchet_core::store::{Delivered, Expired, StoreDecorator, SubmitUnit, Swept};
use ratchet_core::{Claim, DeliveryId, Followed, FollowedBy, JobId, SignalKey, SignalRecord, Store, StoreError};
use uuid::Uuid;

use super::{Broken, Flaw, Layer};

#[derive(Debug)]
pub(super) enum Signals {}

impl StoreDecorator for Layer<Signals> {
    fn inner(&self) -> &dyn Store {
        self.below()
    }

    async fn deliver(&self, delivery: &Delivery) -> Result<Delivered, StoreError> {
        let mut delivery = delivery.clone();
        match self.flaw {
            Flaw::DeliversNothing => return Ok(Delivered::default()),
            Flaw::ForgetsSender => (delivery.decision, delivery.by) = (None, None),
            Flaw::KeepsNoSignal => delivery.keep_for = None,
            Flaw::KeepsSignalsForEver => {
                delivery.keep_for = delivery.keep_for.map(|_| ratchet_core::limits::DURATION_MAX);
            }
            _ => {}
        }
        let mut done = self.good.deliver(&delivery).await?;
        self.seen().released.extend(done.released().map(|job| job.id));
        match (self.flaw, &delivery.target) {
            (Flaw::SaysDelivered, _) if done.jobs.is_empty() => done.jobs.extend(self.someone().await?),
            (Flaw::LastSignalWins, SignalTarget::Job(id)) => drop(self.seen().late.insert(*id, delivery)),
            (Flaw::DeliversToAll, _) => {
                let keys = self.seen().awaited.clone();
                for key in keys {
                    let target = SignalTarget::Key(key);
                    done.jobs.append(&mut self.good.deliver(&Delivery { target, ..delivery.clone() }).await?.jobs);
                }
            }
            (Flaw::GivesKeptSignalsAgain | Flaw::KeepsTheLastSignal, SignalTarget::Key(key))
                if delivery.keep_for.is_some() && done.jobs.is_empty() =>
            {
                self.seen().kept.insert(key.clone(), delivery);
            }
            _ => {}
        }
        Ok(done)
    }

    async fn expire(&self, limit: usize) -> Result<Expired, StoreError> {
        match self.flaw {
            Flaw::NeverExpires if limit > 0 => Ok(Expired::default()),
            Flaw::ExpiresWithoutLimit => self.good.expire((limit * 10 + 1).min(PAGE_LIMIT_MAX)).await,
            _ => self.good.expire(limit).await,
        }
    }

    async fn signals(&self, ids: &[JobId]) -> Result<Vec<SignalRecord>, StoreError> {
        let mut found = self.good.signals(ids).await?;
        for record in &mut found {
            if let Some(signal) = &mut record.signal {
                self.spoil_signal(record.job_id, signal);
            }
        }
        Ok(found)
    }

    async fn sweep_signals(&self, after: Option<&SignalKey>, limit: usize) -> Result<Swept, StoreError> {
        if self.has(Flaw::SweepsNothing) {
            return Ok(Swept::default());
        }
        self.good.sweep_signals(after, limit).await
    }
}

impl Broken {
    /// Any job, as if it had got a signal.
    async fn someone(&self) -> Result<Option<Followed>, StoreError> {
        let job = self.good.list(&ratchet_core::page::JobFilter::default(), None, 1).await?.items.pop();
        Ok(job.map(|job| Followed {
            id: job.id,
            kind: job.spec.kind,
            queue: job.spec.queue,
            job_type: job.job_type,
            priority: job.spec.priority,
            business_key: job.business_key,
            what: FollowedBy::Released,
        }))
    }

    /// Gives what was kept to jobs that come after the one that took it.
    pub(super) async fn give_kept_again(&self, units: &[SubmitUnit]) -> Result<(), StoreError> {
        for job in units.iter().flat_map(|unit| &unit.jobs) {
            let kept = job.signal.as_ref().and_then(|wait| self.seen().kept.get(&wait.key).cloned());
            let Some(kept) = kept else { continue };
            if self.has(Flaw::GivesKeptSignalsAgain) {
                self.good.deliver(&Delivery { target: SignalTarget::Job(job.id), ..kept }).await?;
            } else if self.has(Flaw::KeepsTheLastSignal) {
                self.seen().late.insert(job.id, kept);
            }
        }
        Ok(())
    }

    pub(super) fn spoil_signals(&self, claims: &mut [Claim]) {
        for claim in claims {
            if self.has(Flaw::ForgetsSignals) {
                claim.signal = None;
            }
            if let Some(signal) = &mut claim.signal {
                self.spoil_signal(claim.job.id, signal);
            }
        }
    }

    fn spoil_signal(&self, id: JobId, signal: &mut ratchet_core::Signal) {
        match self.flaw {
            Flaw::RoundsNumbers => signal.payload = super::jobs::rounded(&signal.payload),
            Flaw::DeliversApart => signal.delivery_id = DeliveryId(Uuid::from_u128(id.0.as_u128())),
            Flaw::LastSignalWins | Flaw::KeepsTheLastSignal => {
                if let Some(late) = self.seen().late.get(&id) {
                    *signal = late.signal(signal.key.clone(), signal.at);
                }
            }
            _ => {}
        }
    }
}
