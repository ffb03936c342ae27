-- The schema of Ratchet on PostgreSQL.
--
-- Durations are microseconds. There are no foreign keys: every write is guarded by its statement, and a check per row
-- costs throughput.

-- === Jobs ===

-- What a job is and how it ended: one row per job, written at submit and at its end, until the archiver moves or
-- deletes it. `flow` holds flags for its ties to other jobs; `depends_on` is its batch or schedule.
-- `ended_by` is the node of the attempt that succeeded, which has no row of its own. Free pages stay
-- with the table, as in scheduler_job_queue.
CREATE TABLE scheduler_job (
    job_id                uuid        NOT NULL PRIMARY KEY,
    created_at            timestamptz NOT NULL,
    version               bigint      NOT NULL DEFAULT 0,
    backoff_param_us      bigint      NOT NULL,
    scheduled_time        timestamptz,
    terminated_at         timestamptz,
    execution_start_time  timestamptz,
    execution_end_time    timestamptz,
    execution_duration_us bigint,
    queue_wait_us         bigint,
    timeout_us            bigint,
    release_delay_us      bigint,
    max_retries           integer     NOT NULL,
    total_attempts        integer     NOT NULL DEFAULT 0,
    priority              smallint    NOT NULL,
    crash_count           smallint    NOT NULL DEFAULT 0,
    flow                  smallint    NOT NULL DEFAULT 0,
    ended_by              uuid,
    depends_on            uuid,
    workflow_id           uuid,
    canceled_because      uuid,
    superseded_by         uuid,
    kind                  text        NOT NULL,
    queue                 text        NOT NULL,
    job_type              text        NOT NULL,
    payload               jsonb       NOT NULL,
    backoff_policy        text        NOT NULL,
    terminal_status       text,
    job_result            jsonb,
    terminal_error        text,
    params                jsonb,
    tags                  jsonb,
    resource_name         text,
    caller_principal      text,
    idempotency_key       text,
    business_key          text,
    on_success            jsonb,
    on_failure            jsonb,
    origin                jsonb,
    step_name             text
) WITH (
    vacuum_truncate       =           off
);
-- Lists and counts of ended jobs by state, newest first. One entry per ended job.
CREATE INDEX idx_job_terminal ON scheduler_job (terminal_status, job_id) WHERE terminal_status IS NOT NULL;
-- Jobs that own or once owned a business key. Other jobs cost nothing.
CREATE INDEX idx_job_business_key ON scheduler_job (business_key, job_id) WHERE business_key IS NOT NULL;
-- The children of a batch or of a schedule, newest first. Other jobs cost nothing.
CREATE INDEX idx_job_depends_on ON scheduler_job (depends_on, job_id) WHERE depends_on IS NOT NULL;
-- Jobs by the principal on whose behalf they were submitted. Other jobs cost nothing.
CREATE INDEX idx_job_principal ON scheduler_job (caller_principal, job_id) WHERE caller_principal IS NOT NULL;

-- Where a live job stands: one row per job from submit until its end. A job of a limited resource has its name in
-- `resource`; other jobs have the empty string and so come first in the claim's index. `flow` repeats the flags of the
-- job; `waits_for` is the number of edges and signals that a waiting job still waits for, counted down under the row's
-- lock. Every row is written three times in its short life and then dead, so its pages leave room for new versions, and
-- the table is vacuumed after a thousand changed rows rather than after a fifth of them. Free pages at its end stay
-- with the table: giving them back to the disk blocks every commit meanwhile, for tenths of a second in a large file.
CREATE TABLE scheduler_job_queue (
    job_id                                uuid        NOT NULL PRIMARY KEY,
    scheduled_time                        timestamptz NOT NULL,
    attempts                              integer     NOT NULL DEFAULT 0,
    waits_for                             integer     NOT NULL DEFAULT 0,
    priority                              smallint    NOT NULL,
    flow                                  smallint    NOT NULL DEFAULT 0,
    crash_count                           smallint    NOT NULL DEFAULT 0,
    probation                             boolean     NOT NULL DEFAULT FALSE,
    deferred                              boolean     NOT NULL DEFAULT FALSE,
    version                               bigint      NOT NULL DEFAULT 0,
    deferred_until                        timestamptz,
    updated_at                            timestamptz NOT NULL,
    picked_at                             timestamptz,
    progress                              double precision,
    picked_by                             uuid,
    status                                text        NOT NULL,
    queue                                 text        NOT NULL,
    kind                                  text        NOT NULL,
    resource                              text        NOT NULL DEFAULT '',
    business_key                          text,
    paused_from_status                    text,
    last_error                            text
) WITH (
    fillfactor                            =           50,
    autovacuum_vacuum_scale_factor        =           0.01,
    autovacuum_vacuum_threshold           =           5000,
    autovacuum_vacuum_insert_scale_factor =           0.1,
    autovacuum_analyze_scale_factor       =           0.05,
    autovacuum_analyze_threshold          =           5000,
    autovacuum_vacuum_cost_delay          =           0,
    vacuum_truncate                       =           off
);
-- The claim: one range per lane (probation, resource, queue, kind, priority), read in claim order, so that its cost
-- depends neither on the number of waiting jobs nor on lanes that the claim does not ask for.
CREATE INDEX idx_queue_claim ON scheduler_job_queue (probation, resource, queue, kind, priority, scheduled_time, job_id)
    WHERE status = 'PENDING' AND NOT deferred;
-- Deferred jobs by due time. A due one is marked and moves to the claim's index, to the place of its first due time.
-- Other jobs cost nothing.
CREATE INDEX idx_queue_deferred ON scheduler_job_queue (deferred_until, queue, kind, probation)
    WHERE status = 'PENDING' AND deferred;
-- The jobs that a node runs (reconcile) and the jobs of dead nodes (rescue). As large as the number of running jobs.
CREATE INDEX idx_queue_running ON scheduler_job_queue (picked_by)
    WHERE status = 'RUNNING';

-- Jobs and schedules by tag: one row per tag of each. The list of a job's own tags is in its row.
CREATE TABLE scheduler_job_tag (
    tag    text NOT NULL,
    job_id uuid NOT NULL,
    PRIMARY KEY (tag, job_id)
);

-- Attempts that have ended without success: one row per attempt, named by the version of its claim, until its job is
-- archived or deleted. The row of the job describes the attempt that succeeded; the view below shows all of them. Free pages stay with the table, as in scheduler_job_queue.
CREATE TABLE scheduler_job_execution (
    job_id        uuid        NOT NULL,
    version       bigint      NOT NULL,
    attempt       bigint      NOT NULL,
    node_id       uuid        NOT NULL,
    status        text        NOT NULL,
    started_at    timestamptz NOT NULL,
    ended_at      timestamptz NOT NULL,
    duration_us   bigint      NOT NULL,
    queue_wait_us bigint      NOT NULL,
    error_class   text,
    error_message text,
    PRIMARY KEY (job_id, version)
) WITH (vacuum_truncate = off);

-- All attempts that have ended: those with a row of their own, and those that the row of their job describes.
CREATE VIEW v_scheduler_job_execution AS
SELECT job_id, version, attempt, node_id, status, started_at, ended_at, duration_us, queue_wait_us, error_class,
       error_message
FROM scheduler_job_execution
UNION ALL
SELECT job_id, version - 1, total_attempts, ended_by, terminal_status, execution_start_time, execution_end_time,
       execution_duration_us, queue_wait_us, NULL, NULL
FROM scheduler_job WHERE ended_by IS NOT NULL;

-- === Keys ===

-- The live job, or the schedule, that owns a business key: one row per owned key.
CREATE TABLE scheduler_business_key_reservation (
    business_key text        NOT NULL PRIMARY KEY,
    owner_job_id uuid        NOT NULL,
    reserved_at  timestamptz NOT NULL
);

-- The job that was first submitted with an idempotency key: one row per key that was ever used. Rows outlive their
-- jobs.
CREATE TABLE scheduler_idempotency_key (
    idempotency_key text        NOT NULL PRIMARY KEY,
    original_job_id uuid        NOT NULL,
    reserved_at     timestamptz NOT NULL
);

-- === Workflows, batches, signals ===
-- A job that uses none of them has no row here.

-- The edges of workflows: which job waits for the end of which other, and what that end must be. One row per edge,
-- until one of its jobs is deleted.
CREATE TABLE scheduler_workflow_condition (
    parent_job_id        uuid        NOT NULL,
    child_job_id         uuid        NOT NULL,
    workflow_id          uuid        NOT NULL,
    condition_type       text        NOT NULL,
    condition_expression jsonb,
    description          text,
    condition_priority   integer     NOT NULL,
    definition_order     integer     NOT NULL,
    exclusive            boolean     NOT NULL,
    status               text        NOT NULL,
    created_at           timestamptz NOT NULL,
    PRIMARY KEY (parent_job_id, child_job_id)
);
-- The edges to a job.
CREATE INDEX idx_condition_child ON scheduler_workflow_condition (child_job_id, parent_job_id);
-- The edges of a workflow, in the order of its definition.
CREATE INDEX idx_condition_workflow ON scheduler_workflow_condition (workflow_id, definition_order);
-- The undecided edges of a workflow. As many as jobs wait.
CREATE INDEX idx_condition_open ON scheduler_workflow_condition (workflow_id) WHERE status = 'OPEN';

-- The progress of a batch: one row per batch, as long as its parent job, which has the same id. Half of each page is
-- free, so that counting the children's ends rewrites the row in place.
CREATE TABLE scheduler_batch (
    batch_id           uuid        NOT NULL PRIMARY KEY,
    total_items        bigint      NOT NULL,
    completed_items    bigint      NOT NULL DEFAULT 0,
    failed_items       bigint      NOT NULL DEFAULT 0,
    canceled_items     bigint      NOT NULL DEFAULT 0,
    child_execution_us bigint      NOT NULL DEFAULT 0,
    sealed             boolean     NOT NULL,
    canceling          boolean     NOT NULL DEFAULT FALSE,
    progress_hook      jsonb,
    progress_every     bigint,
    next_progress      bigint,
    created_at         timestamptz NOT NULL,
    updated_at         timestamptz NOT NULL,
    completed_at       timestamptz
) WITH (fillfactor = 50);
-- Batches whose children are still being canceled.
CREATE INDEX idx_batch_canceling ON scheduler_batch (batch_id) WHERE canceling;

-- The signal that a job awaits, and the one that it got: one row per job that ever awaited one, as long as its job.
-- `ended` says that the job has ended without its signal.
CREATE TABLE scheduler_signal_wait (
    job_id            uuid    NOT NULL PRIMARY KEY,
    signal_key        text    NOT NULL,
    signal_timeout_us bigint,
    expires_at        timestamptz,
    payload           jsonb,
    outcome           text,
    rejection_reason  text,
    delivered_by      text,
    delivered_at      timestamptz,
    delivery_id       uuid,
    ended             boolean NOT NULL DEFAULT FALSE
);
-- The jobs that await a key. Jobs that got their signal, or have ended, cost nothing.
CREATE INDEX idx_signal_key ON scheduler_signal_wait (signal_key, job_id) WHERE delivered_at IS NULL AND NOT ended;
-- Waits by the time at which they expire.
CREATE INDEX idx_signal_expiry ON scheduler_signal_wait (expires_at) WHERE delivered_at IS NULL;

-- The mailbox of a key: one row per key that is awaited or was signaled, at whose lock the sender and a job that begins
-- to wait meet. A signal that no job awaited is stored here until `kept_until`.
CREATE TABLE scheduler_signal (
    signal_key       text NOT NULL PRIMARY KEY,
    payload          jsonb,
    outcome          text,
    rejection_reason text,
    delivered_by     text,
    delivered_at     timestamptz,
    delivery_id      uuid,
    kept_until       timestamptz
);

-- === Schedules ===

-- Schedules: one row per schedule.
CREATE TABLE scheduler_recurring_job (
    recurring_id   uuid        NOT NULL PRIMARY KEY,
    kind           text        NOT NULL,
    queue          text        NOT NULL,
    spec           jsonb       NOT NULL,
    on_success     jsonb,
    on_failure     jsonb,
    schedule       jsonb       NOT NULL,
    misfire_policy text        NOT NULL,
    max_catch_up   integer     NOT NULL,
    overlap_policy text        NOT NULL,
    business_key   text,
    declared       boolean     NOT NULL,
    paused         boolean     NOT NULL DEFAULT FALSE,
    next_fire_time timestamptz,
    last_fire_time timestamptz,
    last_job_id    uuid,
    fired_count    bigint      NOT NULL DEFAULT 0,
    skipped_count  bigint      NOT NULL DEFAULT 0,
    version        bigint      NOT NULL DEFAULT 0,
    created_at     timestamptz NOT NULL,
    updated_at     timestamptz NOT NULL
);
-- Schedules by their next fire.
CREATE INDEX idx_recurring_due ON scheduler_recurring_job (next_fire_time) WHERE NOT paused;

-- Schedules that were canceled or retired: one row each, until their retention expires.
CREATE TABLE scheduler_recurring_job_archive (
    recurring_id   uuid        NOT NULL PRIMARY KEY,
    snapshot       jsonb       NOT NULL,
    archived_at    timestamptz NOT NULL,
    archive_reason text        NOT NULL
);
-- Archived schedules by age.
CREATE INDEX idx_recurring_archived ON scheduler_recurring_job_archive (archived_at);

-- === Queues, resources, services ===

-- Queues that were ever paused: one row per queue.
CREATE TABLE scheduler_queue (
    name       text        NOT NULL PRIMARY KEY,
    paused     boolean     NOT NULL,
    updated_at timestamptz NOT NULL
);

-- Limits of resources: the number of jobs that may run at once, one row per resource.
CREATE TABLE scheduler_resource_limit (
    resource_name  text        NOT NULL PRIMARY KEY,
    max_concurrent integer     NOT NULL,
    retry_delay_us bigint      NOT NULL,
    by_hand        boolean     NOT NULL DEFAULT FALSE,
    updated_at     timestamptz NOT NULL
);

-- Permits in use: one row per attempt that runs with a resource, from its claim until its handler has ended.
CREATE TABLE scheduler_resource_permit (
    job_id        uuid        NOT NULL,
    version       bigint      NOT NULL,
    resource_name text        NOT NULL,
    node_id       uuid        NOT NULL,
    acquired_at   timestamptz NOT NULL,
    PRIMARY KEY (job_id, version)
);
-- The permits of a resource, and which nodes use them.
CREATE INDEX idx_permit_resource ON scheduler_resource_permit (resource_name, node_id);
-- The permits of a node.
CREATE INDEX idx_permit_node ON scheduler_resource_permit (node_id);

-- Orders about the circuit breakers of services, for all nodes: one row per service. Rows stay, because nodes recognize
-- a new order by its number.
CREATE TABLE scheduler_breaker (
    service      text        NOT NULL PRIMARY KEY,
    held_open    boolean     NOT NULL,
    order_number bigint      NOT NULL,
    ordered_at   timestamptz NOT NULL
);

-- === Nodes ===

-- Nodes: one row per incarnation, until it leaves or is removed some time after its death. `running` and
-- `clock_skew_us` are as of its last heartbeat; `services` are those whose circuit breaker is not closed there, NULL
-- while all are.
CREATE TABLE scheduler_node (
    node_id        uuid        NOT NULL PRIMARY KEY,
    name           text        NOT NULL,
    node_info      jsonb       NOT NULL,
    started_at     timestamptz NOT NULL,
    last_heartbeat timestamptz NOT NULL,
    running        bigint      NOT NULL,
    clock_skew_us  bigint,
    dead_at        timestamptz,
    services       jsonb
);

-- Leases of the tasks that one node of the cluster does: one row per task.
CREATE TABLE scheduler_lock (
    lock_name  text        NOT NULL PRIMARY KEY,
    locked_by  uuid        NOT NULL,
    locked_at  timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);

-- === Logs and alerts ===

-- Log lines of handlers, until their retention expires or their job is deleted. Lines of an attempt that are written
-- together, at most 100 with numbers from `seq` to `seq_last`, share a row: most of what a line costs is its row. Their
-- highest level and latest time stand beside them, so that rows are skipped or deleted unread. Levels: 1 trace, 2
-- debug, 3 info, 4 warn, 5 error.
--
-- `content`: [{"at": microseconds since 1970, "level": 3, "message": "…", "fields": {…}}, …]
CREATE TABLE scheduler_job_log (
    job_id    uuid        NOT NULL,
    version   bigint      NOT NULL,
    seq       integer     NOT NULL,
    seq_last  integer     NOT NULL,
    attempt   integer     NOT NULL,
    level     smallint    NOT NULL,
    node_id   uuid        NOT NULL,
    logged_at timestamptz NOT NULL,
    content   text        NOT NULL,
    PRIMARY KEY (job_id, version, seq)
);

-- Alerts about dead letters: one row per job and error, until the job is archived or deleted.
CREATE TABLE scheduler_dlq_alert (
    job_id        uuid        NOT NULL,
    error_hash    text        NOT NULL,
    alert_sent_at timestamptz NOT NULL,
    alert_count   integer     NOT NULL,
    PRIMARY KEY (job_id, error_hash)
);

-- === Archive ===

-- Jobs that ended long ago, with their last attempts and their signals: one row per job, until its retention expires. A
-- table of its own, so that rarely read rows do not slow down those that every claim and settle reads.
CREATE TABLE scheduler_job_archive (
    job_id                uuid        NOT NULL PRIMARY KEY,
    kind                  text        NOT NULL,
    queue                 text        NOT NULL,
    job_type              text        NOT NULL,
    priority              smallint    NOT NULL,
    payload               jsonb       NOT NULL,
    params                jsonb,
    tags                  jsonb,
    max_retries           bigint      NOT NULL,
    backoff_policy        text        NOT NULL,
    backoff_param_us      bigint      NOT NULL,
    timeout_us            bigint,
    resource_name         text,
    caller_principal      text,
    idempotency_key       text,
    business_key          text,
    on_success            jsonb,
    on_failure            jsonb,
    origin                jsonb,
    created_at            timestamptz NOT NULL,
    version               bigint      NOT NULL,
    depends_on            uuid,
    superseded_by         uuid,
    terminal_status       text        NOT NULL,
    terminal_error        text,
    total_attempts        bigint      NOT NULL,
    crash_count           bigint      NOT NULL,
    scheduled_time        timestamptz NOT NULL,
    terminated_at         timestamptz NOT NULL,
    execution_start_time  timestamptz,
    execution_end_time    timestamptz,
    execution_duration_us bigint,
    queue_wait_us         bigint,
    ended_by              uuid,
    job_result            jsonb,
    flow                  smallint    NOT NULL,
    workflow_id           uuid,
    step_name             text,
    release_delay_us      bigint,
    canceled_because      uuid,
    archived_at           timestamptz NOT NULL,
    attempts              jsonb,
    signal_wait           jsonb
);
-- Lists, newest first.
CREATE INDEX idx_archive_status ON scheduler_job_archive (terminal_status, job_id);
CREATE INDEX idx_archive_business_key ON scheduler_job_archive (business_key, job_id) WHERE business_key IS NOT NULL;
CREATE INDEX idx_archive_depends_on ON scheduler_job_archive (depends_on, job_id) WHERE depends_on IS NOT NULL;
CREATE INDEX idx_archive_principal ON scheduler_job_archive (caller_principal, job_id) WHERE caller_principal IS NOT NULL;
-- Archived jobs by age, for purges.
CREATE INDEX idx_archive_age ON scheduler_job_archive (archived_at);

-- Archived jobs by tag: one row per tag of each.
CREATE TABLE scheduler_job_archive_tag (
    tag    text NOT NULL,
    job_id uuid NOT NULL,
    PRIMARY KEY (tag, job_id)
);
