-- The schema of Ratchet on SQLite.
--
-- Ids are the sixteen bytes of a UUID, times are microseconds since 1970 in UTC, durations are microseconds. There are
-- no foreign keys: every write is guarded by its statement, and a check per row costs throughput.

-- === Jobs ===

-- What a job is and how it ended: one row per job, written at submit and at its end, until the archiver moves or
-- deletes it. `flow` holds flags for its ties to other jobs; `depends_on` is its batch or schedule.
-- `ended_by` is the node of the attempt that succeeded, which has no row of its own.
CREATE TABLE scheduler_job (
    job_id                BLOB    NOT NULL PRIMARY KEY,
    kind                  TEXT    NOT NULL,
    queue                 TEXT    NOT NULL,
    job_type              TEXT    NOT NULL,
    priority              INTEGER NOT NULL,
    payload               TEXT    NOT NULL,
    params                TEXT,
    tags                  TEXT,
    max_retries           INTEGER NOT NULL,
    backoff_policy        TEXT    NOT NULL,
    backoff_param_us      INTEGER NOT NULL,
    timeout_us            INTEGER,
    resource_name         TEXT,
    caller_principal      TEXT,
    idempotency_key       TEXT,
    business_key          TEXT,
    on_success            TEXT,
    on_failure            TEXT,
    origin                TEXT,
    created_at            INTEGER NOT NULL,
    version               INTEGER NOT NULL DEFAULT 0,
    depends_on            BLOB,
    superseded_by         BLOB,
    terminal_status       TEXT,
    terminal_error        TEXT,
    total_attempts        INTEGER NOT NULL DEFAULT 0,
    crash_count           INTEGER NOT NULL DEFAULT 0,
    scheduled_time        INTEGER,
    terminated_at         INTEGER,
    execution_start_time  INTEGER,
    execution_end_time    INTEGER,
    execution_duration_us INTEGER,
    queue_wait_us         INTEGER,
    ended_by              BLOB,
    job_result            TEXT,
    flow                  INTEGER NOT NULL DEFAULT 0,
    workflow_id           BLOB,
    step_name             TEXT,
    release_delay_us      INTEGER,
    canceled_because      BLOB
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
-- lock.
CREATE TABLE scheduler_job_queue (
    job_id             BLOB    NOT NULL PRIMARY KEY,
    status             TEXT    NOT NULL,
    probation          INTEGER NOT NULL DEFAULT 0,
    queue              TEXT    NOT NULL,
    kind               TEXT    NOT NULL,
    priority           INTEGER NOT NULL,
    scheduled_time     INTEGER NOT NULL,
    deferred           INTEGER NOT NULL DEFAULT 0,
    deferred_until     INTEGER,
    business_key       TEXT,
    version            INTEGER NOT NULL DEFAULT 0,
    attempts           INTEGER NOT NULL DEFAULT 0,
    crash_count        INTEGER NOT NULL DEFAULT 0,
    picked_by          BLOB,
    picked_at          INTEGER,
    progress           REAL,
    paused_from_status TEXT,
    last_error         TEXT,
    updated_at         INTEGER NOT NULL,
    flow               INTEGER NOT NULL DEFAULT 0,
    waits_for          INTEGER NOT NULL DEFAULT 0,
    resource           TEXT    NOT NULL DEFAULT ''
) WITHOUT ROWID;
-- The claim: one range per lane (probation, resource, queue, kind, priority), read in claim order, so that its cost
-- depends neither on the number of waiting jobs nor on lanes that the claim does not ask for.
CREATE INDEX idx_queue_claim ON scheduler_job_queue (probation, resource, queue, kind, priority, scheduled_time, job_id)
    WHERE status = 'PENDING' AND deferred = 0;
-- Deferred jobs by due time. A due one is marked and moves to the claim's index, to the place of its first due time.
-- Other jobs cost nothing.
CREATE INDEX idx_queue_deferred ON scheduler_job_queue (deferred_until, queue, kind, probation)
    WHERE status = 'PENDING' AND deferred = 1;
-- The jobs that a node runs (reconcile) and the jobs of dead nodes (rescue). As large as the number of running jobs.
CREATE INDEX idx_queue_running ON scheduler_job_queue (picked_by, version)
    WHERE status = 'RUNNING';

-- Jobs and schedules by tag: one row per tag of each. The list of a job's own tags is in its row.
CREATE TABLE scheduler_job_tag (
    tag    TEXT NOT NULL,
    job_id BLOB NOT NULL,
    PRIMARY KEY (tag, job_id)
) WITHOUT ROWID;

-- Attempts that have ended without success: one row per attempt, named by the version of its claim, until its job is
-- archived or deleted. The row of the job describes the attempt that succeeded; the view below shows all of them.
CREATE TABLE scheduler_job_execution (
    job_id        BLOB    NOT NULL,
    version       INTEGER NOT NULL,
    attempt       INTEGER NOT NULL,
    node_id       BLOB    NOT NULL,
    status        TEXT    NOT NULL,
    started_at    INTEGER NOT NULL,
    ended_at      INTEGER NOT NULL,
    duration_us   INTEGER NOT NULL,
    queue_wait_us INTEGER NOT NULL,
    error_class   TEXT,
    error_message TEXT,
    PRIMARY KEY (job_id, version)
) WITHOUT ROWID;

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
    business_key TEXT    NOT NULL PRIMARY KEY,
    owner_job_id BLOB    NOT NULL,
    reserved_at  INTEGER NOT NULL
) WITHOUT ROWID;

-- The job that was first submitted with an idempotency key: one row per key that was ever used. Rows outlive their
-- jobs.
CREATE TABLE scheduler_idempotency_key (
    idempotency_key TEXT    NOT NULL PRIMARY KEY,
    original_job_id BLOB    NOT NULL,
    reserved_at     INTEGER NOT NULL
) WITHOUT ROWID;

-- === Workflows, batches, signals ===
-- A job that uses none of them has no row here.

-- The edges of workflows: which job waits for the end of which other, and what that end must be. One row per edge,
-- until one of its jobs is deleted.
CREATE TABLE scheduler_workflow_condition (
    parent_job_id        BLOB    NOT NULL,
    child_job_id         BLOB    NOT NULL,
    workflow_id          BLOB    NOT NULL,
    condition_type       TEXT    NOT NULL,
    condition_expression TEXT,
    description          TEXT,
    condition_priority   INTEGER NOT NULL,
    definition_order     INTEGER NOT NULL,
    exclusive            INTEGER NOT NULL,
    status               TEXT    NOT NULL,
    created_at           INTEGER NOT NULL,
    PRIMARY KEY (parent_job_id, child_job_id)
) WITHOUT ROWID;
-- The edges to a job.
CREATE INDEX idx_condition_child ON scheduler_workflow_condition (child_job_id, parent_job_id);
-- The edges of a workflow, in the order of its definition.
CREATE INDEX idx_condition_workflow ON scheduler_workflow_condition (workflow_id, definition_order);
-- The undecided edges of a workflow. As many as jobs wait.
CREATE INDEX idx_condition_open ON scheduler_workflow_condition (workflow_id) WHERE status = 'OPEN';

-- The progress of a batch: one row per batch, as long as its parent job, which has the same id.
CREATE TABLE scheduler_batch (
    batch_id           BLOB    NOT NULL PRIMARY KEY,
    total_items        INTEGER NOT NULL,
    completed_items    INTEGER NOT NULL DEFAULT 0,
    failed_items       INTEGER NOT NULL DEFAULT 0,
    canceled_items     INTEGER NOT NULL DEFAULT 0,
    child_execution_us INTEGER NOT NULL DEFAULT 0,
    sealed             INTEGER NOT NULL,
    canceling          INTEGER NOT NULL DEFAULT 0,
    progress_hook      TEXT,
    progress_every     INTEGER,
    next_progress      INTEGER,
    created_at         INTEGER NOT NULL,
    updated_at         INTEGER NOT NULL,
    completed_at       INTEGER
) WITHOUT ROWID;
-- Batches whose children are still being canceled.
CREATE INDEX idx_batch_canceling ON scheduler_batch (batch_id) WHERE canceling = 1;

-- The signal that a job awaits, and the one that it got: one row per job that ever awaited one, as long as its job.
-- `ended` says that the job has ended without its signal.
CREATE TABLE scheduler_signal_wait (
    job_id            BLOB    NOT NULL PRIMARY KEY,
    signal_key        TEXT    NOT NULL,
    signal_timeout_us INTEGER,
    expires_at        INTEGER,
    payload           TEXT,
    outcome           TEXT,
    rejection_reason  TEXT,
    delivered_by      TEXT,
    delivered_at      INTEGER,
    delivery_id       BLOB,
    ended             INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
-- The jobs that await a key. Jobs that got their signal, or have ended, cost nothing.
CREATE INDEX idx_signal_key ON scheduler_signal_wait (signal_key, job_id) WHERE delivered_at IS NULL AND ended = 0;
-- Waits by the time at which they expire.
CREATE INDEX idx_signal_expiry ON scheduler_signal_wait (expires_at) WHERE delivered_at IS NULL;

-- The mailbox of a key: one row per key that is awaited or was signaled, at whose lock the sender and a job that begins
-- to wait meet. A signal that no job awaited is stored here until `kept_until`.
CREATE TABLE scheduler_signal (
    signal_key       TEXT NOT NULL PRIMARY KEY,
    payload          TEXT,
    outcome          TEXT,
    rejection_reason TEXT,
    delivered_by     TEXT,
    delivered_at     INTEGER,
    delivery_id      BLOB,
    kept_until       INTEGER
) WITHOUT ROWID;

-- === Schedules ===

-- Schedules: one row per schedule.
CREATE TABLE scheduler_recurring_job (
    recurring_id   BLOB    NOT NULL PRIMARY KEY,
    kind           TEXT    NOT NULL,
    queue          TEXT    NOT NULL,
    spec           TEXT    NOT NULL,
    on_success     TEXT,
    on_failure     TEXT,
    schedule       TEXT    NOT NULL,
    misfire_policy TEXT    NOT NULL,
    max_catch_up   INTEGER NOT NULL,
    overlap_policy TEXT    NOT NULL,
    business_key   TEXT,
    declared       INTEGER NOT NULL,
    paused         INTEGER NOT NULL DEFAULT 0,
    next_fire_time INTEGER,
    last_fire_time INTEGER,
    last_job_id    BLOB,
    fired_count    INTEGER NOT NULL DEFAULT 0,
    skipped_count  INTEGER NOT NULL DEFAULT 0,
    version        INTEGER NOT NULL DEFAULT 0,
    created_at     INTEGER NOT NULL,
    updated_at     INTEGER NOT NULL
);
-- Schedules by their next fire.
CREATE INDEX idx_recurring_due ON scheduler_recurring_job (next_fire_time) WHERE paused = 0;

-- Schedules that were canceled or retired: one row each, until their retention expires.
CREATE TABLE scheduler_recurring_job_archive (
    recurring_id   BLOB    NOT NULL PRIMARY KEY,
    snapshot       TEXT    NOT NULL,
    archived_at    INTEGER NOT NULL,
    archive_reason TEXT    NOT NULL
);
-- Archived schedules by age.
CREATE INDEX idx_recurring_archived ON scheduler_recurring_job_archive (archived_at);

-- === Queues, resources, services ===

-- Queues that were ever paused: one row per queue.
CREATE TABLE scheduler_queue (
    name       TEXT    NOT NULL PRIMARY KEY,
    paused     INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) WITHOUT ROWID;

-- Limits of resources: the number of jobs that may run at once, one row per resource.
CREATE TABLE scheduler_resource_limit (
    resource_name  TEXT    NOT NULL PRIMARY KEY,
    max_concurrent INTEGER NOT NULL,
    retry_delay_us INTEGER NOT NULL,
    by_hand        INTEGER NOT NULL DEFAULT 0,
    updated_at     INTEGER NOT NULL
) WITHOUT ROWID;

-- Permits in use: one row per attempt that runs with a resource, from its claim until its handler has ended.
CREATE TABLE scheduler_resource_permit (
    job_id        BLOB    NOT NULL,
    version       INTEGER NOT NULL,
    resource_name TEXT    NOT NULL,
    node_id       BLOB    NOT NULL,
    acquired_at   INTEGER NOT NULL,
    PRIMARY KEY (job_id, version)
) WITHOUT ROWID;
-- The permits of a resource, and which nodes use them.
CREATE INDEX idx_permit_resource ON scheduler_resource_permit (resource_name, node_id);
-- The permits of a node.
CREATE INDEX idx_permit_node ON scheduler_resource_permit (node_id);

-- Orders about the circuit breakers of services, for all nodes: one row per service. Rows stay, because nodes recognize
-- a new order by its number.
CREATE TABLE scheduler_breaker (
    service      TEXT    NOT NULL PRIMARY KEY,
    held_open    INTEGER NOT NULL,
    order_number INTEGER NOT NULL,
    ordered_at   INTEGER NOT NULL
) WITHOUT ROWID;

-- === Nodes ===

-- Nodes: one row per incarnation, until it leaves or is removed some time after its death. `running` and
-- `clock_skew_us` are as of its last heartbeat; `services` are those whose circuit breaker is not closed there, NULL
-- while all are.
CREATE TABLE scheduler_node (
    node_id        BLOB    NOT NULL PRIMARY KEY,
    name           TEXT    NOT NULL,
    node_info      TEXT    NOT NULL,
    started_at     INTEGER NOT NULL,
    last_heartbeat INTEGER NOT NULL,
    dead_at        INTEGER,
    running        INTEGER NOT NULL DEFAULT 0,
    clock_skew_us  INTEGER,
    services       TEXT
) WITHOUT ROWID;

-- Leases of the tasks that one node of the cluster does: one row per task.
CREATE TABLE scheduler_lock (
    lock_name  TEXT    NOT NULL PRIMARY KEY,
    locked_by  BLOB    NOT NULL,
    locked_at  INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) WITHOUT ROWID;

-- === Logs and alerts ===

-- Log lines of handlers, until their retention expires or their job is deleted. Lines of an attempt that are written
-- together, at most 100 with numbers from `seq` to `seq_last`, share a row: most of what a line costs is its row. Their
-- highest level and latest time stand beside them, so that rows are skipped or deleted unread. Levels: 1 trace, 2
-- debug, 3 info, 4 warn, 5 error.
--
-- `content`: [{"at": microseconds since 1970, "level": 3, "message": "…", "fields": {…}}, …]
CREATE TABLE scheduler_job_log (
    job_id    BLOB    NOT NULL,
    version   INTEGER NOT NULL,
    seq       INTEGER NOT NULL,
    seq_last  INTEGER NOT NULL,
    attempt   INTEGER NOT NULL,
    level     INTEGER NOT NULL,
    node_id   BLOB    NOT NULL,
    logged_at INTEGER NOT NULL,
    content   TEXT    NOT NULL,
    PRIMARY KEY (job_id, version, seq)
) WITHOUT ROWID;

-- Alerts about dead letters: one row per job and error, until the job is archived or deleted.
CREATE TABLE scheduler_dlq_alert (
    job_id        BLOB    NOT NULL,
    error_hash    TEXT    NOT NULL,
    alert_sent_at INTEGER NOT NULL,
    alert_count   INTEGER NOT NULL,
    PRIMARY KEY (job_id, error_hash)
) WITHOUT ROWID;

-- === Archive ===

-- Jobs that ended long ago, with their last attempts and their signals: one row per job, until its retention expires. A
-- table of its own, so that rarely read rows do not slow down those that every claim and settle reads.
CREATE TABLE scheduler_job_archive (
    job_id                BLOB    NOT NULL PRIMARY KEY,
    kind                  TEXT    NOT NULL,
    queue                 TEXT    NOT NULL,
    job_type              TEXT    NOT NULL,
    priority              INTEGER NOT NULL,
    payload               TEXT    NOT NULL,
    params                TEXT,
    tags                  TEXT,
    max_retries           INTEGER NOT NULL,
    backoff_policy        TEXT    NOT NULL,
    backoff_param_us      INTEGER NOT NULL,
    timeout_us            INTEGER,
    resource_name         TEXT,
    caller_principal      TEXT,
    idempotency_key       TEXT,
    business_key          TEXT,
    on_success            TEXT,
    on_failure            TEXT,
    origin                TEXT,
    created_at            INTEGER NOT NULL,
    version               INTEGER NOT NULL,
    depends_on            BLOB,
    superseded_by         BLOB,
    terminal_status       TEXT    NOT NULL,
    terminal_error        TEXT,
    total_attempts        INTEGER NOT NULL,
    crash_count           INTEGER NOT NULL,
    scheduled_time        INTEGER NOT NULL,
    terminated_at         INTEGER NOT NULL,
    execution_start_time  INTEGER,
    execution_end_time    INTEGER,
    execution_duration_us INTEGER,
    queue_wait_us         INTEGER,
    ended_by              BLOB,
    job_result            TEXT,
    flow                  INTEGER NOT NULL,
    workflow_id           BLOB,
    step_name             TEXT,
    release_delay_us      INTEGER,
    canceled_because      BLOB,
    archived_at           INTEGER NOT NULL,
    attempts              TEXT,
    signal_wait           TEXT
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
    tag    TEXT NOT NULL,
    job_id BLOB NOT NULL,
    PRIMARY KEY (tag, job_id)
) WITHOUT ROWID;
