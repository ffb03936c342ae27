-- The whole schema of Ratchet on SQLite, for a clean install by hand. The migrations give the same; a test compares them.
--
-- Ids are the sixteen bytes of a UUID, times are microseconds since 1970 in UTC, durations are microseconds.
-- There are no foreign keys: every write goes through guarded statements, and a check per row costs throughput.

-- What a job is, and what became of it: written when it is submitted and when it ends.
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
    job_result            TEXT,
    flow                  INTEGER NOT NULL DEFAULT 0,
    workflow_id           BLOB,
    step_name             TEXT,
    release_delay_us      INTEGER,
    canceled_because      BLOB
);

-- Lists of the dead letter queue and of other ended jobs, newest first; counts by state. One entry per ended job.
CREATE INDEX idx_job_terminal ON scheduler_job (terminal_status, job_id) WHERE terminal_status IS NOT NULL;
-- Jobs that hold or once held a business key. Jobs without one cost nothing.
CREATE INDEX idx_job_business_key ON scheduler_job (business_key, job_id) WHERE business_key IS NOT NULL;
-- The children of a batch or of a schedule, newest first. Jobs that belong to nothing cost nothing.
CREATE INDEX idx_job_depends_on ON scheduler_job (depends_on, job_id) WHERE depends_on IS NOT NULL;

-- Where a live job stands: one row from submit until the end.
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

-- The claim: one range per lane (probation, resource, queue, kind, priority), read in claim order, so that its cost does not
-- depend on how many jobs wait, here or in lanes that nobody asks for.
CREATE INDEX idx_queue_claim ON scheduler_job_queue (probation, resource, queue, kind, priority, scheduled_time, job_id)
    WHERE status = 'PENDING' AND deferred = 0;
-- Deferred jobs, to find those whose time has come; these are marked and go over to the claim index, where their place
-- is that of their first due time. Other jobs cost nothing.
CREATE INDEX idx_queue_deferred ON scheduler_job_queue (deferred_until, queue, kind, probation)
    WHERE status = 'PENDING' AND deferred = 1;
-- What a node runs (reconcile) and whose node is dead (orphans). As small as what runs.
CREATE INDEX idx_queue_running ON scheduler_job_queue (picked_by, version)
    WHERE status = 'RUNNING';

-- Jobs by tag; a job's own list of tags is in its row.
CREATE TABLE scheduler_job_tag (
    tag    TEXT NOT NULL,
    job_id BLOB NOT NULL,
    PRIMARY KEY (tag, job_id)
) WITHOUT ROWID;

-- One row per attempt; the version of the claim names it.
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

-- Which live job holds a business key.
CREATE TABLE scheduler_business_key_reservation (
    business_key TEXT    NOT NULL PRIMARY KEY,
    owner_job_id BLOB    NOT NULL,
    reserved_at  INTEGER NOT NULL
) WITHOUT ROWID;

-- Which job was first submitted with an idempotency key; outlives the job.
CREATE TABLE scheduler_idempotency_key (
    idempotency_key TEXT    NOT NULL PRIMARY KEY,
    original_job_id BLOB    NOT NULL,
    reserved_at     INTEGER NOT NULL
) WITHOUT ROWID;

-- How many jobs that name a resource may run at once.
CREATE TABLE scheduler_resource_limit (
    resource_name  TEXT    NOT NULL PRIMARY KEY,
    max_concurrent INTEGER NOT NULL,
    retry_delay_us INTEGER NOT NULL,
    by_hand        INTEGER NOT NULL DEFAULT 0,
    updated_at     INTEGER NOT NULL
) WITHOUT ROWID;

-- One row per attempt that runs with a resource, from its claim until its handler has ended.
CREATE TABLE scheduler_resource_permit (
    job_id        BLOB    NOT NULL,
    version       INTEGER NOT NULL,
    resource_name TEXT    NOT NULL,
    node_id       BLOB    NOT NULL,
    acquired_at   INTEGER NOT NULL,
    PRIMARY KEY (job_id, version)
) WITHOUT ROWID;

CREATE INDEX idx_permit_resource ON scheduler_resource_permit (resource_name, node_id);
CREATE INDEX idx_permit_node ON scheduler_resource_permit (node_id);

-- Queues that somebody has paused or resumed.
CREATE TABLE scheduler_queue (
    name       TEXT    NOT NULL PRIMARY KEY,
    paused     INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) WITHOUT ROWID;

-- One row per incarnation of a node.
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

-- Leases of cluster singletons.
CREATE TABLE scheduler_lock (
    lock_name   TEXT    NOT NULL PRIMARY KEY,
    locked_by   BLOB    NOT NULL,
    locked_at   INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL
) WITHOUT ROWID;

-- Alerts about jobs in the dead letter queue, one row per job and error.
CREATE TABLE scheduler_dlq_alert (
    job_id        BLOB    NOT NULL,
    error_hash    TEXT    NOT NULL,
    alert_sent_at INTEGER NOT NULL,
    alert_count   INTEGER NOT NULL,
    PRIMARY KEY (job_id, error_hash)
) WITHOUT ROWID;

-- The edges of workflows: which job waits for the end of which, and what that end must be like.
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
CREATE INDEX idx_condition_child ON scheduler_workflow_condition (child_job_id, parent_job_id);
CREATE INDEX idx_condition_workflow ON scheduler_workflow_condition (workflow_id, definition_order);
-- The edges that are not decided. As many as jobs wait.
CREATE INDEX idx_condition_open ON scheduler_workflow_condition (workflow_id) WHERE status = 'OPEN';

-- How far a batch is; the job of the same id stands for it.
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
-- Batches whose children are still being cancelled.
CREATE INDEX idx_batch_canceling ON scheduler_batch (batch_id) WHERE canceling = 1;

-- What a job that awaits a signal waits for, and what came.
CREATE TABLE scheduler_signal_wait (
    job_id           BLOB    NOT NULL PRIMARY KEY,
    signal_key       TEXT    NOT NULL,
    signal_timeout_us INTEGER,
    expires_at       INTEGER,
    payload          TEXT,
    outcome          TEXT,
    rejection_reason TEXT,
    delivered_by     TEXT,
    delivered_at     INTEGER,
    delivery_id      BLOB,
    ended            INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX idx_signal_key ON scheduler_signal_wait (signal_key, job_id) WHERE delivered_at IS NULL AND ended = 0;
CREATE INDEX idx_signal_expiry ON scheduler_signal_wait (expires_at) WHERE delivered_at IS NULL;

-- One row for each key that is waited for or was signalled: who delivers and who begins to wait meet at its lock. A signal
-- that nobody waited for is kept here for its time.
CREATE TABLE scheduler_signal (
    signal_key       TEXT    NOT NULL PRIMARY KEY,
    payload          TEXT,
    outcome          TEXT,
    rejection_reason TEXT,
    delivered_by     TEXT,
    delivered_at     INTEGER,
    delivery_id      BLOB,
    kept_until       INTEGER
) WITHOUT ROWID;

-- Schedules.
CREATE TABLE scheduler_recurring_job (
    recurring_id     BLOB    NOT NULL PRIMARY KEY,
    kind             TEXT    NOT NULL,
    queue            TEXT    NOT NULL,
    spec             TEXT    NOT NULL,
    on_success       TEXT,
    on_failure       TEXT,
    schedule         TEXT    NOT NULL,
    misfire_policy   TEXT    NOT NULL,
    max_catch_up     INTEGER NOT NULL,
    overlap_policy   TEXT    NOT NULL,
    business_key     TEXT,
    declared         INTEGER NOT NULL,
    paused           INTEGER NOT NULL DEFAULT 0,
    next_fire_time   INTEGER,
    last_fire_time   INTEGER,
    last_job_id      BLOB,
    fired_count      INTEGER NOT NULL DEFAULT 0,
    skipped_count    INTEGER NOT NULL DEFAULT 0,
    version          INTEGER NOT NULL DEFAULT 0,
    created_at       INTEGER NOT NULL,
    updated_at       INTEGER NOT NULL
);
CREATE INDEX idx_recurring_due ON scheduler_recurring_job (next_fire_time) WHERE paused = 0;

-- Schedules that were cancelled or retired.
CREATE TABLE scheduler_recurring_job_archive (
    recurring_id   BLOB    NOT NULL PRIMARY KEY,
    snapshot       TEXT    NOT NULL,
    archived_at    INTEGER NOT NULL,
    archive_reason TEXT    NOT NULL
);
CREATE INDEX idx_recurring_archived ON scheduler_recurring_job_archive (archived_at);

-- Jobs that ended long ago: what they were, what became of them, their last attempts and their signals. A table of its
-- own, so that what is looked at seldom makes nothing slower that is looked at often.
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
-- What has been here long enough to be deleted.
CREATE INDEX idx_archive_age ON scheduler_job_archive (archived_at);

-- Archived jobs by tag.
CREATE TABLE scheduler_job_archive_tag (
    tag    TEXT NOT NULL,
    job_id BLOB NOT NULL,
    PRIMARY KEY (tag, job_id)
) WITHOUT ROWID;

-- Jobs by the principal that they were submitted for. Jobs without one cost nothing.
CREATE INDEX idx_job_principal ON scheduler_job (caller_principal, job_id) WHERE caller_principal IS NOT NULL;

-- What handlers wrote down, found by job. Lines of an attempt that are written together, with numbers from seq to seq_last, share
-- a row: most of what a line costs is its row. Their highest level and latest time stand beside them, so that rows are passed
-- over or deleted unread. Levels: 1 trace, 2 debug, 3 info, 4 warn, 5 error. Old lines are found by the ids of their jobs, which
-- tell when those were made; an index by time would have to take in every row.
--
-- content: [{"at": microseconds since 1970, "level": 3, "message": "…", "fields": {…}}, …]
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

-- What people ordered about the circuit breakers of services, for all nodes. Rows stay: nodes see by the number what is new.
CREATE TABLE scheduler_breaker (
    service      TEXT    NOT NULL PRIMARY KEY,
    held_open    INTEGER NOT NULL,
    order_number INTEGER NOT NULL,
    ordered_at   INTEGER NOT NULL
) WITHOUT ROWID;

-- Which steps of the schema this database has.
CREATE TABLE ratchet_schema_version (
    version     INTEGER NOT NULL PRIMARY KEY,
    description TEXT    NOT NULL,
    checksum    TEXT    NOT NULL,
    applied_at  INTEGER NOT NULL,
    dirty       INTEGER NOT NULL
);
INSERT INTO ratchet_schema_version (version, description, checksum, applied_at, dirty)
VALUES (1, 'jobs', '415dbfc36f8379f0b9deb990a34edd00679e55aab05deb4b81f9e556fc10f429', 0, 0);
INSERT INTO ratchet_schema_version (version, description, checksum, applied_at, dirty)
VALUES (2, 'node vitals', 'b79197e1aa2bd6e6e418558e08711e8a684312bd6bcbbfa4c56565a1d97241ec', 0, 0),
       (3, 'composition', 'a879ac6fd85ac99e660ea5b0ef0d504c52ab9a0db5f51af438ac9d3b79caa0bc', 0, 0),
       (4, 'queues of schedules', '0033df28a06c51a1c5b5ff2bfc25a3c8cf83608e00b65bef3de2bc6d889bb766', 0, 0),
       (5, 'archive', '6f0e53d56795ad4902012dbba82b8421e512a070df219891f76ebf29f2ef7512', 0, 0),
       (6, 'permits', '1fea7d2c407f470c8e6dd7ef7c86cb804c1c31ba5f4b024a1e73ee98c698ee7c', 0, 0),
       (7, 'job log', 'aa01e2294be4159d2a22b283cf09baad346cbc79c1931dea88a8745d738777cb', 0, 0),
       (8, 'node services', 'bded4c9f2adc63d9952cfb8a5df16a5bc2ce5738d44af918a1802a83aa625e59', 0, 0),
       (9, 'breaker orders', 'be559c9f28a6edc116a66ff69976604043b777a8b3aea468ed46212fdb80edfb', 0, 0),
       (10, 'log groups', 'dbab4c026d3b6f48d25b8d7fb5f5f646435e2c8272ef624bfbd0aac47030b183', 0, 0);
