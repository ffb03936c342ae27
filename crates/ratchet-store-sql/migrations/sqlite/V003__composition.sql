-- Jobs that hang together: workflows, batches, signals, schedules. A job that uses none of it costs nothing more.

-- How a job is tied to others (a few flags), and the workflow that it is a step of.
ALTER TABLE scheduler_job ADD COLUMN flow INTEGER NOT NULL DEFAULT 0;
ALTER TABLE scheduler_job ADD COLUMN workflow_id BLOB;
ALTER TABLE scheduler_job ADD COLUMN step_name TEXT;
ALTER TABLE scheduler_job ADD COLUMN release_delay_us INTEGER;
ALTER TABLE scheduler_job ADD COLUMN canceled_because BLOB;

-- The children of a batch or of a schedule, newest first.
DROP INDEX idx_job_depends_on;
CREATE INDEX idx_job_depends_on ON scheduler_job (depends_on, job_id) WHERE depends_on IS NOT NULL;

-- The same flags, and how many edges and signals a waiting job waits for: counted down under the row's lock.
ALTER TABLE scheduler_job_queue ADD COLUMN flow INTEGER NOT NULL DEFAULT 0;
ALTER TABLE scheduler_job_queue ADD COLUMN waits_for INTEGER NOT NULL DEFAULT 0;

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
    delivery_id      BLOB
) WITHOUT ROWID;
CREATE INDEX idx_signal_key ON scheduler_signal_wait (signal_key, job_id) WHERE delivered_at IS NULL;
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
