//! The store traits for any driver.

/// Implements the store traits of `ratchet-core` for a type that implements [`Transact`](crate::Transact), apart from
/// [`Store`](ratchet_core::Store) itself and the connection for heartbeats: the driver has an inherent method
/// `open_heartbeat(&self) -> Result<Box<dyn PulseStore>, StoreError>`.
#[macro_export]
macro_rules! implement_store {
    ($store:ty) => {
        const _: () = {
            use ::std::sync::Arc;
            use ::std::time::Duration;

            use $crate::__private::async_trait;
            use $crate::__private::core::flow::{Edge, Workflow};
            use $crate::__private::core::insight::{LaneRange, RecentEnd};
            use $crate::__private::core::node::{NodeRecord, NodeRegistration, QueueRecord};
            use $crate::__private::core::page::{JobCursor, JobFilter, ListCursor, Page};
            use $crate::__private::core::recurring::{
                ArchiveReason, Firing, NewRecurring, RecurringFilter, RecurringRecord,
            };
            use $crate::__private::core::signal::Delivery;
            use $crate::__private::core::store::{
                ArchiveRequest, ArchiveStore, Archived, BatchStore, BreakerStore, CanceledChildren, ClusterStore,
                ControlStore, DeadLetterStore, Declared, Delivered, Expired, Fired, InsightStore, JobLogStore,
                JobStore, LastAttempts, Orphans, Progress, PulseStore, PurgeLog, PurgedLog, QueryStore, QueueStore,
                RecurringStore, Replacement, ResourceStore, RetriedAll, Running, SignalStore, StateCounts,
                SubmitOutcome, SubmitUnit, Submitted, Swept, Transitioned, Turn, TurnStore, WaitingLane,
            };
            use $crate::__private::core::{
                AttemptRecord, Batch, BreakerOrder, BusinessKey, ClaimRequest, CountBy, Counted, DeadLetter,
                DeadLetterFilter, ErrorKind, Fence, Followed, IdempotencyKey, JobId, JobRecord, JobState, LogFilter,
                LogLine, LogPage, LogPlace, NewJob, NodeId, Principal, QueueName, ResourceLimit, ResourceName,
                ResourceRecord, ServiceName, Settlement, SignalKey, SignalRecord, StoreError, Timestamp,
            };
            use $crate::{
                Intent, Transact as _, archive, archived, batches, breakers, cancel_children, cluster, control,
                counting, dead_letters, edges, fire, insight, job_log, lease, leave, listing, next_due, purge, query,
                queues, read, recurring, resources, signals, submit, submit_plain, turn, work,
            };

            #[async_trait]
            impl JobStore for $store {
                async fn submit(&self, units: &[SubmitUnit]) -> Result<Vec<SubmitOutcome>, StoreError> {
                    let units: Arc<[SubmitUnit]> = units.into();
                    if submit_plain::is_plain(self.dialect(), &units) {
                        let all = units.clone();
                        let plain = work!([all], |conn| submit_plain::submit_plain(conn, &all));
                        match self.transact(Intent::Statement, plain).await {
                            Err(error) if *error.kind() == ErrorKind::Conflict => {}
                            outcomes => return outcomes,
                        }
                    }
                    let hopeful = units.clone();
                    let in_bulk = work!([hopeful], |conn| submit::submit_in_bulk(conn, &hopeful));
                    match self.transact(Intent::Write, in_bulk).await {
                        Err(error) if *error.kind() == ErrorKind::Conflict => {
                            let carefully = work!([units], |conn| submit::submit_carefully(conn, &units));
                            self.transact(Intent::Write, carefully).await
                        }
                        outcomes => outcomes,
                    }
                }

                async fn find(&self, ids: &[JobId]) -> Result<Vec<JobRecord>, StoreError> {
                    let ids: Arc<[JobId]> = ids.into();
                    self.transact(Intent::Read, work!([ids], |conn| archived::find(conn, &ids))).await
                }

                async fn find_by_business_key(&self, key: &BusinessKey) -> Result<Option<JobId>, StoreError> {
                    let key = key.clone();
                    self.transact(Intent::Read, work!([key], |conn| read::find_by_business_key(conn, &key))).await
                }

                async fn find_by_idempotency_key(&self, key: &IdempotencyKey) -> Result<Option<JobId>, StoreError> {
                    let key = key.clone();
                    self.transact(Intent::Read, work!([key], |conn| read::find_by_idempotency_key(conn, &key))).await
                }

                async fn delete(&self, id: JobId) -> Result<bool, StoreError> {
                    self.transact(Intent::Write, work!([], |conn| archived::delete(conn, id))).await
                }

                async fn keep(&self, id: JobId) -> Result<(), StoreError> {
                    self.transact(Intent::Write, work!([], |conn| leave::keep(conn, id))).await
                }
            }

            #[async_trait]
            impl TurnStore for $store {
                async fn turn(
                    &self,
                    settlements: &[Settlement],
                    claim: Option<&ClaimRequest>,
                ) -> Result<Turn, StoreError> {
                    // A poll that finds nothing writes nothing.
                    let intent = if settlements.is_empty() { Intent::MaybeWrite } else { Intent::Write };
                    let settlements: Arc<[Settlement]> = settlements.into();
                    let claim = claim.cloned().map(Arc::new);
                    let turn = work!([settlements, claim], |conn| turn::turn(conn, &settlements, claim.as_deref()));
                    self.transact(intent, turn).await
                }

                async fn next_due(&self, request: &ClaimRequest) -> Result<Option<Duration>, StoreError> {
                    let request = Arc::new(request.clone());
                    self.transact(Intent::Read, work!([request], |conn| next_due::next_due(conn, &request))).await
                }
            }

            #[async_trait]
            impl ControlStore for $store {
                async fn cancel(&self, id: JobId) -> Result<Option<Transitioned>, StoreError> {
                    self.transact(Intent::Write, work!([], |conn| control::cancel(conn, id))).await
                }

                async fn pause(&self, id: JobId) -> Result<Option<Transitioned>, StoreError> {
                    self.transact(Intent::Write, work!([], |conn| control::pause(conn, id))).await
                }

                async fn resume(&self, id: JobId) -> Result<Option<Transitioned>, StoreError> {
                    self.transact(Intent::Write, work!([], |conn| control::resume(conn, id))).await
                }

                async fn retry(&self, id: JobId) -> Result<Option<Transitioned>, StoreError> {
                    self.transact(Intent::Write, work!([], |conn| control::retry(conn, id))).await
                }

                async fn release(&self, id: JobId) -> Result<Option<Transitioned>, StoreError> {
                    self.transact(Intent::Write, work!([], |conn| control::release(conn, id))).await
                }

                async fn replace(&self, old: JobId, new: &NewJob) -> Result<Replacement, StoreError> {
                    let new = Arc::new(new.clone());
                    self.transact(Intent::Write, work!([new], |conn| control::replace(conn, old, &new))).await
                }
            }

            #[async_trait]
            impl BatchStore for $store {
                async fn extend_batch(&self, id: JobId, children: &[NewJob]) -> Result<Vec<Submitted>, StoreError> {
                    let children: Arc<[NewJob]> = children.into();
                    if submit_plain::is_plain_extension(self.dialect(), &children) {
                        let all = children.clone();
                        let plain = work!([all], |conn| submit_plain::extend_plain(conn, id, &all));
                        match self.transact(Intent::Statement, plain).await {
                            Err(error) if *error.kind() == ErrorKind::Conflict => {}
                            outcome => return outcome,
                        }
                    }
                    let hopeful = children.clone();
                    let in_bulk = work!([hopeful], |conn| batches::extend_in_bulk(conn, id, &hopeful));
                    match self.transact(Intent::Write, in_bulk).await {
                        Err(error) if *error.kind() == ErrorKind::Conflict => {
                            let carefully = work!([children], |conn| batches::extend_carefully(conn, id, &children));
                            self.transact(Intent::Write, carefully).await
                        }
                        outcome => outcome,
                    }
                }

                async fn seal_batch(&self, id: JobId) -> Result<Vec<Followed>, StoreError> {
                    self.transact(Intent::Write, work!([], |conn| batches::seal(conn, id))).await
                }

                async fn find_batches(&self, ids: &[JobId]) -> Result<Vec<Batch>, StoreError> {
                    let ids: Arc<[JobId]> = ids.into();
                    self.transact(Intent::Read, work!([ids], |conn| batches::find(conn, &ids))).await
                }

                async fn list_batches(
                    &self,
                    after: Option<JobCursor>,
                    limit: usize,
                ) -> Result<Page<Batch>, StoreError> {
                    self.transact(Intent::Read, work!([], |conn| batches::list(conn, after, limit))).await
                }

                async fn canceling_batches(&self, limit: usize) -> Result<Vec<JobId>, StoreError> {
                    self.transact(Intent::Read, work!([], |conn| cancel_children::canceling(conn, limit))).await
                }

                async fn cancel_children(
                    &self,
                    id: JobId,
                    after: Option<JobId>,
                    limit: usize,
                ) -> Result<CanceledChildren, StoreError> {
                    let cancel = work!([], |conn| cancel_children::cancel_children(conn, id, after, limit));
                    self.transact(Intent::Write, cancel).await
                }
            }

            #[async_trait]
            impl ClusterStore for $store {
                async fn database_time(&self) -> Result<Timestamp, StoreError> {
                    self.transact(Intent::Read, work!([], |conn| cluster::database_time(conn))).await
                }

                async fn register(&self, node: &NodeRegistration) -> Result<(), StoreError> {
                    let node = node.clone();
                    self.transact(Intent::Write, work!([node], |conn| cluster::register(conn, &node))).await
                }

                async fn deregister(&self, node: NodeId) -> Result<(), StoreError> {
                    self.transact(Intent::Write, work!([], |conn| cluster::deregister(conn, node))).await
                }

                async fn open_pulse(&self) -> Result<Box<dyn PulseStore>, StoreError> {
                    self.open_heartbeat().await
                }

                async fn nodes(&self) -> Result<Vec<NodeRecord>, StoreError> {
                    self.transact(Intent::Read, work!([], |conn| cluster::nodes(conn))).await
                }

                async fn reconcile(&self, node: NodeId, progress: &[Progress]) -> Result<Vec<Running>, StoreError> {
                    let intent = if progress.is_empty() { Intent::Read } else { Intent::Write };
                    let progress: Arc<[Progress]> = progress.into();
                    self.transact(intent, work!([progress], |conn| cluster::reconcile(conn, node, &progress))).await
                }

                async fn orphans(
                    &self,
                    observer: NodeId,
                    grace: Duration,
                    limit: usize,
                ) -> Result<Orphans, StoreError> {
                    let orphans = work!([], |conn| cluster::orphans(conn, observer, grace, limit));
                    self.transact(Intent::MaybeWrite, orphans).await
                }

                async fn acquire_lease(&self, name: &str, owner: NodeId, ttl: Duration) -> Result<bool, StoreError> {
                    let name: Arc<str> = name.into();
                    self.transact(Intent::Write, work!([name], |conn| lease::acquire(conn, &name, owner, ttl))).await
                }

                async fn release_lease(&self, name: &str, owner: NodeId) -> Result<(), StoreError> {
                    let name: Arc<str> = name.into();
                    self.transact(Intent::Statement, work!([name], |conn| lease::release(conn, &name, owner))).await
                }
            }

            #[async_trait]
            impl QueueStore for $store {
                async fn pause_queue(&self, queue: &QueueName) -> Result<bool, StoreError> {
                    let queue = queue.clone();
                    self.transact(Intent::Write, work!([queue], |conn| queues::pause(conn, &queue))).await
                }

                async fn resume_queue(&self, queue: &QueueName) -> Result<bool, StoreError> {
                    let queue = queue.clone();
                    self.transact(Intent::Statement, work!([queue], |conn| queues::resume(conn, &queue))).await
                }

                async fn queues(&self) -> Result<Vec<QueueRecord>, StoreError> {
                    self.transact(Intent::Read, work!([], |conn| queues::queues(conn))).await
                }
            }

            #[async_trait]
            impl RecurringStore for $store {
                async fn create_recurring(&self, new: &NewRecurring) -> Result<(), StoreError> {
                    let new = Arc::new(new.clone());
                    self.transact(Intent::Write, work!([new], |conn| recurring::create(conn, &new))).await
                }

                async fn declare_recurring(&self, new: &NewRecurring) -> Result<Declared, StoreError> {
                    let new = Arc::new(new.clone());
                    self.transact(Intent::Write, work!([new], |conn| recurring::declare(conn, &new))).await
                }

                async fn declare_all_recurring(&self, all: &[NewRecurring]) -> Result<Vec<Declared>, StoreError> {
                    if all.is_empty() {
                        return Ok(Vec::new());
                    }
                    let all: Arc<[NewRecurring]> = all.into();
                    self.transact(Intent::Write, work!([all], |conn| recurring::declare_all(conn, &all))).await
                }

                async fn find_recurring(&self, ids: &[JobId]) -> Result<Vec<RecurringRecord>, StoreError> {
                    let ids: Arc<[JobId]> = ids.into();
                    self.transact(Intent::Read, work!([ids], |conn| recurring::find(conn, &ids))).await
                }

                async fn list_recurring(
                    &self,
                    filter: &RecurringFilter,
                    after: Option<JobCursor>,
                    limit: usize,
                ) -> Result<Page<RecurringRecord>, StoreError> {
                    let filter = Arc::new(filter.clone());
                    let list = work!([filter], |conn| recurring::list(conn, &filter, after, limit));
                    self.transact(Intent::Read, list).await
                }

                async fn next_fire(&self) -> Result<Option<Duration>, StoreError> {
                    self.transact(Intent::Read, work!([], |conn| recurring::next_fire(conn))).await
                }

                async fn due_recurring(&self, limit: usize) -> Result<(Timestamp, Vec<RecurringRecord>), StoreError> {
                    self.transact(Intent::Read, work!([], |conn| recurring::due(conn, limit))).await
                }

                async fn fire_recurring(&self, firings: &[Firing]) -> Result<Vec<Fired>, StoreError> {
                    let firings: Arc<[Firing]> = firings.into();
                    self.transact(Intent::Write, work!([firings], |conn| fire::fire(conn, &firings))).await
                }

                async fn pause_recurring(&self, id: JobId) -> Result<bool, StoreError> {
                    self.transact(Intent::Write, work!([], |conn| recurring::pause(conn, id))).await
                }

                async fn resume_recurring(&self, id: JobId, next_fire: Option<Timestamp>) -> Result<bool, StoreError> {
                    self.transact(Intent::Write, work!([], |conn| recurring::resume(conn, id, next_fire))).await
                }

                async fn cancel_recurring(
                    &self,
                    id: JobId,
                    reason: ArchiveReason,
                    idle_for: Option<Duration>,
                ) -> Result<bool, StoreError> {
                    let cancel = work!([], |conn| recurring::cancel(conn, id, reason, idle_for));
                    self.transact(Intent::Write, cancel).await
                }
            }

            #[async_trait]
            impl SignalStore for $store {
                async fn deliver(&self, delivery: &Delivery) -> Result<Delivered, StoreError> {
                    let delivery = Arc::new(delivery.clone());
                    self.transact(Intent::Write, work!([delivery], |conn| signals::deliver(conn, &delivery))).await
                }

                async fn expire(&self, limit: usize) -> Result<Expired, StoreError> {
                    self.transact(Intent::MaybeWrite, work!([], |conn| signals::expire(conn, limit))).await
                }

                async fn signals(&self, ids: &[JobId]) -> Result<Vec<SignalRecord>, StoreError> {
                    let ids: Arc<[JobId]> = ids.into();
                    self.transact(Intent::Read, work!([ids], |conn| archived::signals(conn, &ids))).await
                }

                async fn sweep_signals(&self, after: Option<&SignalKey>, limit: usize) -> Result<Swept, StoreError> {
                    let after = after.cloned();
                    let sweep = work!([after], |conn| signals::sweep(conn, after.as_ref(), limit));
                    self.transact(Intent::MaybeWrite, sweep).await
                }
            }

            #[async_trait]
            impl ArchiveStore for $store {
                async fn archive(&self, request: &ArchiveRequest) -> Result<Archived, StoreError> {
                    let request = Arc::new(request.clone());
                    self.transact(Intent::MaybeWrite, work!([request], |conn| archive::archive(conn, &request))).await
                }

                async fn purge_archive(&self, age: Duration, limit: usize) -> Result<u64, StoreError> {
                    self.transact(Intent::MaybeWrite, work!([], |conn| purge::purge_archive(conn, age, limit))).await
                }

                async fn purge_schedules(&self, age: Duration, limit: usize) -> Result<u64, StoreError> {
                    self.transact(Intent::MaybeWrite, work!([], |conn| purge::purge_schedules(conn, age, limit))).await
                }
            }

            #[async_trait]
            impl DeadLetterStore for $store {
                async fn dead_letters(
                    &self,
                    filter: &JobFilter,
                    after: Option<JobCursor>,
                    limit: usize,
                ) -> Result<Page<DeadLetter>, StoreError> {
                    let filter = Arc::new(filter.clone());
                    let letters = work!([filter], |conn| dead_letters::dead_letters(conn, &filter, after, limit));
                    self.transact(Intent::Read, letters).await
                }

                async fn retry_all(&self, filter: &DeadLetterFilter, limit: usize) -> Result<RetriedAll, StoreError> {
                    let filter = Arc::new(filter.clone());
                    let retry = work!([filter], |conn| dead_letters::retry_all(conn, &filter, limit));
                    self.transact(Intent::Write, retry).await
                }
            }

            #[async_trait]
            impl ResourceStore for $store {
                async fn declare_resource(&self, limit: &ResourceLimit) -> Result<(), StoreError> {
                    let limit = limit.clone();
                    self.transact(Intent::Write, work!([limit], |conn| resources::declare(conn, &limit))).await
                }

                async fn set_resource(&self, limit: &ResourceLimit) -> Result<(), StoreError> {
                    let limit = limit.clone();
                    self.transact(Intent::Write, work!([limit], |conn| resources::set(conn, &limit))).await
                }

                async fn remove_resource(&self, name: &ResourceName) -> Result<bool, StoreError> {
                    let name = name.clone();
                    self.transact(Intent::Statement, work!([name], |conn| resources::remove(conn, &name))).await
                }

                async fn resources(&self) -> Result<Vec<ResourceRecord>, StoreError> {
                    self.transact(Intent::Read, work!([], |conn| resources::resources(conn))).await
                }

                async fn permits_of(&self, node: NodeId) -> Result<Vec<Fence>, StoreError> {
                    self.transact(Intent::Read, work!([], |conn| resources::permits_of(conn, node))).await
                }

                async fn release_permits(&self, attempts: &[Fence]) -> Result<(), StoreError> {
                    let attempts: Arc<[Fence]> = attempts.into();
                    let release = work!([attempts], |conn| resources::release_permits(conn, &attempts));
                    self.transact(Intent::Write, release).await
                }
            }

            #[async_trait]
            impl BreakerStore for $store {
                async fn open_breaker(&self, service: &ServiceName) -> Result<bool, StoreError> {
                    let service = service.clone();
                    self.transact(Intent::Write, work!([service], |conn| breakers::open(conn, &service))).await
                }

                async fn reset_breaker(&self, service: &ServiceName) -> Result<bool, StoreError> {
                    let service = service.clone();
                    self.transact(Intent::Write, work!([service], |conn| breakers::reset(conn, &service))).await
                }

                async fn breaker_orders(&self) -> Result<Vec<BreakerOrder>, StoreError> {
                    self.transact(Intent::Read, work!([], |conn| breakers::orders(conn))).await
                }
            }

            #[async_trait]
            impl InsightStore for $store {
                async fn waiting_lanes(&self) -> Result<Vec<WaitingLane>, StoreError> {
                    self.transact(Intent::Read, work!([], |conn| insight::waiting_lanes(conn))).await
                }

                async fn count_waiting(&self, ranges: &[LaneRange], most: u64) -> Result<Vec<u64>, StoreError> {
                    let ranges: Arc<[LaneRange]> = ranges.into();
                    let count = work!([ranges], |conn| insight::count_waiting(conn, &ranges, most));
                    self.transact(Intent::Read, count).await
                }

                async fn recent_ends(&self, state: JobState, limit: usize) -> Result<Vec<RecentEnd>, StoreError> {
                    self.transact(Intent::Read, work!([], |conn| insight::recent_ends(conn, state, limit))).await
                }

                async fn count_ended(&self, state: JobState, most: u64) -> Result<u64, StoreError> {
                    self.transact(Intent::Read, work!([], |conn| insight::count_ended(conn, state, most))).await
                }

                async fn running_by_queue(&self) -> Result<::std::collections::BTreeMap<QueueName, u64>, StoreError> {
                    self.transact(Intent::Read, work!([], |conn| insight::running_by_queue(conn))).await
                }

                async fn paused_queues(&self) -> Result<Vec<QueueName>, StoreError> {
                    self.transact(Intent::Read, work!([], |conn| insight::paused_queues(conn))).await
                }

                async fn edges_to(&self, id: JobId) -> Result<Vec<Edge>, StoreError> {
                    self.transact(Intent::Read, work!([], |conn| insight::edges_to(conn, id))).await
                }
            }

            #[async_trait]
            impl JobLogStore for $store {
                async fn append_log(&self, lines: Arc<[LogLine]>) -> Result<(), StoreError> {
                    if lines.is_empty() {
                        return Ok(());
                    }
                    let new = lines.clone();
                    let append = work!([new], |conn| job_log::append_new(conn, &new));
                    match self.transact(Intent::LongStatement, append).await {
                        Err(error) if *error.kind() == ErrorKind::Conflict => {}
                        done => return done,
                    }
                    let append = work!([lines], |conn| job_log::append_missing(conn, &lines));
                    self.transact(Intent::LongStatement, append).await
                }

                async fn read_log(
                    &self,
                    id: JobId,
                    filter: &LogFilter,
                    after: Option<LogPlace>,
                    limit: usize,
                ) -> Result<LogPage, StoreError> {
                    let filter = *filter;
                    let read = work!([], |conn| job_log::read(conn, id, &filter, after, limit));
                    self.transact(Intent::Read, read).await
                }

                async fn purge_log(&self, request: &PurgeLog) -> Result<PurgedLog, StoreError> {
                    let request = *request;
                    self.transact(Intent::MaybeWrite, work!([], |conn| job_log::purge(conn, &request))).await
                }
            }

            #[async_trait]
            impl QueryStore for $store {
                async fn list(
                    &self,
                    filter: &JobFilter,
                    after: Option<ListCursor>,
                    limit: usize,
                ) -> Result<Page<JobRecord, ListCursor>, StoreError> {
                    let filter = Arc::new(filter.clone());
                    let list = work!([filter], |conn| listing::list(conn, &filter, after, limit));
                    self.transact(Intent::Read, list).await
                }

                async fn count(&self, filter: &JobFilter, by: &CountBy) -> Result<Counted, StoreError> {
                    let asked = Arc::new((filter.clone(), by.clone()));
                    let count = work!([asked], |conn| counting::count(conn, &asked.0, &asked.1));
                    self.transact(Intent::Read, count).await
                }

                async fn count_by_state(&self) -> Result<StateCounts, StoreError> {
                    self.transact(Intent::Read, work!([], |conn| query::count_by_state(conn))).await
                }

                async fn count_by_state_of(&self, principal: &Principal) -> Result<StateCounts, StoreError> {
                    let principal = principal.clone();
                    let count = work!([principal], |conn| query::count_by_state_of(conn, &principal));
                    self.transact(Intent::Read, count).await
                }

                async fn attempts(&self, id: JobId) -> Result<Vec<AttemptRecord>, StoreError> {
                    self.transact(Intent::Read, work!([], |conn| archived::attempts(conn, id))).await
                }

                async fn last_attempts(
                    &self,
                    id: JobId,
                    before: Option<u64>,
                    limit: usize,
                ) -> Result<LastAttempts, StoreError> {
                    let read = work!([], |conn| archived::last_attempts(conn, id, before, limit));
                    self.transact(Intent::Read, read).await
                }

                async fn workflow(&self, id: JobId) -> Result<Option<Workflow>, StoreError> {
                    self.transact(Intent::Read, work!([], |conn| query::workflow(conn, id))).await
                }

                async fn workflows(&self, after: Option<JobCursor>, limit: usize) -> Result<Page<JobId>, StoreError> {
                    self.transact(Intent::Read, work!([], |conn| query::workflows(conn, after, limit))).await
                }

                async fn edges_from(&self, ids: &[JobId]) -> Result<Vec<Edge>, StoreError> {
                    let ids: Arc<[JobId]> = ids.into();
                    self.transact(Intent::Read, work!([ids], |conn| edges::from(conn, &ids))).await
                }

                async fn alert_count(&self, id: JobId) -> Result<u64, StoreError> {
                    self.transact(Intent::Read, work!([], |conn| query::alert_count(conn, id))).await
                }
            }
        };
    };
}
