-- The whole schema of Ratchet on PostgreSQL, for a clean install by hand. The migrations give the same; a test compares them.
--
-- Durations are microseconds. There are no foreign keys: every write goes through guarded statements, and a check per
-- row costs throughput.

-- What a job is, and what became of it: written when it is submitted and when it ends.
CREATE TABLE scheduler_job (
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
    version               bigint      NOT NULL DEFAULT 0,
    depends_on            uuid,
    superseded_by         uuid,
    terminal_status       text,
    terminal_error        text,
    total_attempts        bigint      NOT NULL DEFAULT 0,
    crash_count           bigint      NOT NULL DEFAULT 0,
    scheduled_time        timestamptz,
    terminated_at         timestamptz,
    execution_start_time  timestamptz,
    execution_end_time    timestamptz,
    execution_duration_us bigint,
    queue_wait_us         bigint,
    job_result            jsonb,
    flow                  smallint NOT NULL DEFAULT 0,
    workflow_id           uuid,
    step_name             text,
    release_delay_us      bigint,
    canceled_because      uuid
) WITH (
    -- What archived jobs leave is soon needed again. Giving it back to the disk instead makes every commit wait meanwhile, for
    -- tenths of a second where files are large.
    vacuum_truncate = off
);

-- Lists of the dead letter queue and of other ended jobs, newest first; counts by state. One entry per ended job.
CREATE INDEX idx_job_terminal ON scheduler_job (terminal_status, job_id) WHERE terminal_status IS NOT NULL;
-- Jobs that hold or once held a business key. Jobs without one cost nothing.
CREATE INDEX idx_job_business_key ON scheduler_job (business_key, job_id) WHERE business_key IS NOT NULL;
-- The children of a batch or of a schedule, newest first. Jobs that belong to nothing cost nothing.
CREATE INDEX idx_job_depends_on ON scheduler_job (depends_on, job_id) WHERE depends_on IS NOT NULL;

-- Where a live job stands: one row from submit until the end. Every row is written three times in its short life and
-- then dead, so its pages leave room for new versions and it is vacuumed by the thousand rows, not by the fifth of them.
CREATE TABLE scheduler_job_queue (
    job_id             uuid             NOT NULL PRIMARY KEY,
    status             text             NOT NULL,
    probation          boolean          NOT NULL DEFAULT FALSE,
    queue              text             NOT NULL,
    kind               text             NOT NULL,
    priority           smallint         NOT NULL,
    scheduled_time     timestamptz      NOT NULL,
    deferred           boolean          NOT NULL DEFAULT FALSE,
    deferred_until     timestamptz,
    business_key       text,
    version            bigint           NOT NULL DEFAULT 0,
    attempts           bigint           NOT NULL DEFAULT 0,
    crash_count        bigint           NOT NULL DEFAULT 0,
    picked_by          uuid,
    picked_at          timestamptz,
    progress           double precision,
    paused_from_status text,
    last_error         text,
    updated_at         timestamptz      NOT NULL,
    flow               smallint NOT NULL DEFAULT 0,
    waits_for          integer NOT NULL DEFAULT 0,
    resource           text NOT NULL DEFAULT ''
) WITH (
    fillfactor = 80,
    autovacuum_vacuum_scale_factor = 0.01,
    autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_insert_scale_factor = 0.1,
    autovacuum_analyze_scale_factor = 0.05,
    autovacuum_analyze_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0,
    vacuum_truncate = off
);

-- The claim: one range per lane (probation, resource, queue, kind, priority), read in claim order, so that its cost does not
-- depend on how many jobs wait, here or in lanes that nobody asks for.
CREATE INDEX idx_queue_claim ON scheduler_job_queue (probation, resource, queue, kind, priority, scheduled_time, job_id)
    WHERE status = 'PENDING' AND NOT deferred;
-- Deferred jobs, to find those whose time has come; these are marked and go over to the claim index, where their place
-- is that of their first due time. Other jobs cost nothing.
CREATE INDEX idx_queue_deferred ON scheduler_job_queue (deferred_until, queue, kind, probation)
    WHERE status = 'PENDING' AND deferred;
-- What a node runs (reconcile) and whose node is dead (orphans). As small as what runs.
CREATE INDEX idx_queue_running ON scheduler_job_queue (picked_by, version)
    WHERE status = 'RUNNING';

-- Jobs by tag; a job's own list of tags is in its row.
CREATE TABLE scheduler_job_tag (
    tag    text NOT NULL,
    job_id uuid NOT NULL,
    PRIMARY KEY (tag, job_id)
);

-- One row per attempt; the version of the claim names it.
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

-- Which live job holds a business key.
CREATE TABLE scheduler_business_key_reservation (
    business_key text        NOT NULL PRIMARY KEY,
    owner_job_id uuid        NOT NULL,
    reserved_at  timestamptz NOT NULL
);

-- Which job was first submitted with an idempotency key; outlives the job.
CREATE TABLE scheduler_idempotency_key (
    idempotency_key text        NOT NULL PRIMARY KEY,
    original_job_id uuid        NOT NULL,
    reserved_at     timestamptz NOT NULL
);

-- How many jobs that name a resource may run at once.
CREATE TABLE scheduler_resource_limit (
    resource_name  text        NOT NULL PRIMARY KEY,
    max_concurrent integer     NOT NULL,
    retry_delay_us bigint      NOT NULL,
    by_hand        boolean     NOT NULL DEFAULT FALSE,
    updated_at     timestamptz NOT NULL
);

-- One row per attempt that runs with a resource, from its claim until its handler has ended.
CREATE TABLE scheduler_resource_permit (
    job_id        uuid        NOT NULL,
    version       bigint      NOT NULL,
    resource_name text        NOT NULL,
    node_id       uuid        NOT NULL,
    acquired_at   timestamptz NOT NULL,
    PRIMARY KEY (job_id, version)
);

CREATE INDEX idx_permit_resource ON scheduler_resource_permit (resource_name, node_id);
CREATE INDEX idx_permit_node ON scheduler_resource_permit (node_id);

-- Queues that somebody has paused or resumed.
CREATE TABLE scheduler_queue (
    name       text        NOT NULL PRIMARY KEY,
    paused     boolean     NOT NULL,
    updated_at timestamptz NOT NULL
);

-- One row per incarnation of a node.
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

-- Leases of cluster singletons.
CREATE TABLE scheduler_lock (
    lock_name  text        NOT NULL PRIMARY KEY,
    locked_by  uuid        NOT NULL,
    locked_at  timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);

-- Alerts about jobs in the dead letter queue, one row per job and error.
CREATE TABLE scheduler_dlq_alert (
    job_id        uuid        NOT NULL,
    error_hash    text        NOT NULL,
    alert_sent_at timestamptz NOT NULL,
    alert_count   integer     NOT NULL,
    PRIMARY KEY (job_id, error_hash)
);

-- The edges of workflows: which job waits for the end of which, and what that end must be like.
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
CREATE INDEX idx_condition_child ON scheduler_workflow_condition (child_job_id, parent_job_id);
CREATE INDEX idx_condition_workflow ON scheduler_workflow_condition (workflow_id, definition_order);
-- The edges that are not decided. As many as jobs wait.
CREATE INDEX idx_condition_open ON scheduler_workflow_condition (workflow_id) WHERE status = 'OPEN';

-- How far a batch is; the job of the same id stands for it.
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
-- Batches whose children are still being cancelled.
CREATE INDEX idx_batch_canceling ON scheduler_batch (batch_id) WHERE canceling;

-- What a job that awaits a signal waits for, and what came.
CREATE TABLE scheduler_signal_wait (
    job_id           uuid        NOT NULL PRIMARY KEY,
    signal_key       text        NOT NULL,
    signal_timeout_us bigint,
    expires_at       timestamptz,
    payload          jsonb,
    outcome          text,
    rejection_reason text,
    delivered_by     text,
    delivered_at     timestamptz,
    delivery_id      uuid,
    ended            boolean     NOT NULL DEFAULT FALSE
);
CREATE INDEX idx_signal_key ON scheduler_signal_wait (signal_key, job_id) WHERE delivered_at IS NULL AND NOT ended;
CREATE INDEX idx_signal_expiry ON scheduler_signal_wait (expires_at) WHERE delivered_at IS NULL;

-- One row for each key that is waited for or was signalled: who delivers and who begins to wait meet at its lock. A signal
-- that nobody waited for is kept here for its time.
CREATE TABLE scheduler_signal (
    signal_key       text        NOT NULL PRIMARY KEY,
    payload          jsonb,
    outcome          text,
    rejection_reason text,
    delivered_by     text,
    delivered_at     timestamptz,
    delivery_id      uuid,
    kept_until       timestamptz
);

-- Schedules.
CREATE TABLE scheduler_recurring_job (
    recurring_id     uuid        NOT NULL PRIMARY KEY,
    kind             text        NOT NULL,
    queue            text        NOT NULL,
    spec             jsonb       NOT NULL,
    on_success       jsonb,
    on_failure       jsonb,
    schedule         jsonb       NOT NULL,
    misfire_policy   text        NOT NULL,
    max_catch_up     integer     NOT NULL,
    overlap_policy   text        NOT NULL,
    business_key     text,
    declared         boolean     NOT NULL,
    paused           boolean     NOT NULL DEFAULT FALSE,
    next_fire_time   timestamptz,
    last_fire_time   timestamptz,
    last_job_id      uuid,
    fired_count      bigint      NOT NULL DEFAULT 0,
    skipped_count    bigint      NOT NULL DEFAULT 0,
    version          bigint      NOT NULL DEFAULT 0,
    created_at       timestamptz NOT NULL,
    updated_at       timestamptz NOT NULL
);
CREATE INDEX idx_recurring_due ON scheduler_recurring_job (next_fire_time) WHERE NOT paused;

-- Schedules that were cancelled or retired.
CREATE TABLE scheduler_recurring_job_archive (
    recurring_id   uuid        NOT NULL PRIMARY KEY,
    snapshot       jsonb       NOT NULL,
    archived_at    timestamptz NOT NULL,
    archive_reason text        NOT NULL
);
CREATE INDEX idx_recurring_archived ON scheduler_recurring_job_archive (archived_at);

-- Jobs that ended long ago: what they were, what became of them, their last attempts and their signals. A table of its
-- own, so that what is looked at seldom makes nothing slower that is looked at often.
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
-- What has been here long enough to be deleted.
CREATE INDEX idx_archive_age ON scheduler_job_archive (archived_at);

-- Archived jobs by tag.
CREATE TABLE scheduler_job_archive_tag (
    tag    text NOT NULL,
    job_id uuid NOT NULL,
    PRIMARY KEY (tag, job_id)
);

-- Jobs by the principal that they were submitted for. Jobs without one cost nothing.
CREATE INDEX idx_job_principal ON scheduler_job (caller_principal, job_id) WHERE caller_principal IS NOT NULL;

-- What handlers wrote down, found by job. Lines of an attempt that are written together, with numbers from seq to seq_last, share
-- a row: most of what a line costs is its row. Their highest level and latest time stand beside them, so that rows are passed
-- over or deleted unread. Levels: 1 trace, 2 debug, 3 info, 4 warn, 5 error. Old lines are found by the ids of their jobs, which
-- tell when those were made; an index by time would have to take in every row.
--
-- content: [{"at": microseconds since 1970, "level": 3, "message": "…", "fields": {…}}, …]
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

-- What people ordered about the circuit breakers of services, for all nodes. Rows stay: nodes see by the number what is new.
CREATE TABLE scheduler_breaker (
    service      text        NOT NULL PRIMARY KEY,
    held_open    boolean     NOT NULL,
    order_number bigint      NOT NULL,
    ordered_at   timestamptz NOT NULL
);

-- Which steps of the schema this database has.
CREATE TABLE ratchet_schema_version (
    version     integer     NOT NULL PRIMARY KEY,
    description text        NOT NULL,
    checksum    text        NOT NULL,
    applied_at  timestamptz NOT NULL,
    dirty       boolean     NOT NULL
);
INSERT INTO ratchet_schema_version (version, description, checksum, applied_at, dirty)
VALUES (1, 'jobs', '59f5fd8e0b43538dc0a6c50378cf6047db8ed15b46aed5d4191ab6f5548f6437', now(), FALSE),
       (2, 'composition', '4714b2b4316642bb479df3e9070bbf5a678862d38680d8509381b982deaa484c', now(), FALSE),
       (3, 'queues of schedules', '00b158b7617abd67bf778a9727b3dcaae3c95619e6f6b24728ade105e91ea8d1', now(), FALSE),
       (4, 'archive', 'f7da77b234c81cb456af23e6665320dd7e4c2dd810a280637bac5c53b75dbf20', now(), FALSE),
       (5, 'permits', '95cd4937679f5b1928251b56b4fc11fb02a0265246e0d2cc96609f6b52da0892', now(), FALSE),
       (6, 'job log', 'f8a72c6cb544368a7d7f309e9f5cd03e9528c46a6cd47efe0efdd93fd954fa97', now(), FALSE),
       (7, 'node services', 'ca263e2818e6acd1bdf0836e3ae9fc41bb7ecc1fe1aa39f4a925677e2d970675', now(), FALSE),
       (8, 'breaker orders', '29337c5fbdc50b6b4fe255a9cb797dcfaf333d41916f098f10337d15d344c9e6', now(), FALSE),
       (9, 'keep pages', '6b3f45653cf891394c190d28b71a5cf75914ad2aedf7036a2ff2e972113b449d', now(), FALSE),
       (10, 'log groups', 'd6b92025ca5a103d2c96d6c2cdee64c1fd139946c84837423994245effb9c5b5', now(), FALSE);
