-- Jobs that hang together: workflows, batches, signals, schedules. A job that uses none of it costs nothing more.

-- How a job is tied to others (a few flags), and the workflow that it is a step of.
ALTER TABLE scheduler_job
    ADD COLUMN flow             smallint NOT NULL DEFAULT 0,
    ADD COLUMN workflow_id      uuid,
    ADD COLUMN step_name        text,
    ADD COLUMN release_delay_us bigint,
    ADD COLUMN canceled_because uuid;

-- The children of a batch or of a schedule, newest first.
DROP INDEX idx_job_depends_on;
CREATE INDEX idx_job_depends_on ON scheduler_job (depends_on, job_id) WHERE depends_on IS NOT NULL;

-- The same flags, and how many edges and signals a waiting job waits for: counted down under the row's lock.
ALTER TABLE scheduler_job_queue
    ADD COLUMN flow      smallint NOT NULL DEFAULT 0,
    ADD COLUMN waits_for integer  NOT NULL DEFAULT 0;

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
    delivery_id      uuid
);
CREATE INDEX idx_signal_key ON scheduler_signal_wait (signal_key, job_id) WHERE delivered_at IS NULL;
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
