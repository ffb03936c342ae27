-- Jobs that hang together: workflows, batches, signals, schedules. A job that uses none of it costs nothing more.

-- How a job is tied to others (a few flags), and the workflow that it is a step of.
ALTER TABLE scheduler_job
    ADD COLUMN flow             SMALLINT   NOT NULL DEFAULT 0,
    ADD COLUMN workflow_id      BINARY(16),
    ADD COLUMN step_name        VARCHAR(64),
    ADD COLUMN release_delay_us BIGINT,
    ADD COLUMN canceled_because BINARY(16);

-- The children of a batch or of a schedule. A table of its own: an index here has an entry for every job, also for those
-- that belong to nothing.
CREATE TABLE scheduler_job_child (
    parent_id BINARY(16) NOT NULL,
    job_id    BINARY(16) NOT NULL,
    PRIMARY KEY (parent_id, job_id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- The same flags, and how many edges and signals a waiting job waits for: counted down under the row's lock.
ALTER TABLE scheduler_job_queue
    ADD COLUMN flow      SMALLINT NOT NULL DEFAULT 0,
    ADD COLUMN waits_for INT      NOT NULL DEFAULT 0;

-- The edges of workflows: which job waits for the end of which, and what that end must be like.
CREATE TABLE scheduler_workflow_condition (
    parent_job_id        BINARY(16)      NOT NULL,
    child_job_id         BINARY(16)      NOT NULL,
    workflow_id          BINARY(16)      NOT NULL,
    condition_type       VARCHAR(32)     NOT NULL,
    condition_expression JSON,
    description          VARCHAR(255),
    condition_priority   INT             NOT NULL,
    definition_order     INT             NOT NULL,
    exclusive            BOOLEAN         NOT NULL,
    status               VARCHAR(16)     NOT NULL,
    created_at           DATETIME(6)     NOT NULL,
    PRIMARY KEY (parent_job_id, child_job_id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
CREATE INDEX idx_condition_child ON scheduler_workflow_condition (child_job_id, parent_job_id);
CREATE INDEX idx_condition_workflow ON scheduler_workflow_condition (workflow_id, definition_order);

-- How far a batch is; the job of the same id stands for it.
CREATE TABLE scheduler_batch (
    batch_id           BINARY(16)      NOT NULL PRIMARY KEY,
    total_items        BIGINT          NOT NULL,
    completed_items    BIGINT          NOT NULL DEFAULT 0,
    failed_items       BIGINT          NOT NULL DEFAULT 0,
    canceled_items     BIGINT          NOT NULL DEFAULT 0,
    child_execution_us BIGINT          NOT NULL DEFAULT 0,
    sealed             BOOLEAN         NOT NULL,
    canceling          BOOLEAN         NOT NULL DEFAULT FALSE,
    progress_hook      JSON,
    progress_every     BIGINT,
    next_progress      BIGINT,
    created_at         DATETIME(6)     NOT NULL,
    updated_at         DATETIME(6)     NOT NULL,
    completed_at       DATETIME(6)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
-- Batches whose children are still being cancelled.
CREATE INDEX idx_batch_canceling ON scheduler_batch (canceling);

-- What a job that awaits a signal waits for, and what came.
CREATE TABLE scheduler_signal_wait (
    job_id           BINARY(16)      NOT NULL PRIMARY KEY,
    signal_key       VARBINARY(1020) NOT NULL,
    signal_timeout_us BIGINT,
    expires_at       DATETIME(6),
    payload          JSON,
    outcome          VARCHAR(16),
    rejection_reason TEXT,
    delivered_by     VARCHAR(255),
    delivered_at     DATETIME(6),
    delivery_id      BINARY(16)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
CREATE INDEX idx_signal_key ON scheduler_signal_wait (signal_key, job_id);
CREATE INDEX idx_signal_expiry ON scheduler_signal_wait (delivered_at, expires_at);

-- One row for each key that is waited for or was signalled: who delivers and who begins to wait meet at its lock. A signal
-- that nobody waited for is kept here for its time.
CREATE TABLE scheduler_signal (
    signal_key       VARBINARY(1020) NOT NULL PRIMARY KEY,
    payload          JSON,
    outcome          VARCHAR(16),
    rejection_reason TEXT,
    delivered_by     VARCHAR(255),
    delivered_at     DATETIME(6),
    delivery_id      BINARY(16),
    kept_until       DATETIME(6)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Schedules.
CREATE TABLE scheduler_recurring_job (
    recurring_id     BINARY(16)      NOT NULL PRIMARY KEY,
    kind             VARCHAR(128)    NOT NULL,
    queue            VARCHAR(64)     NOT NULL,
    spec             JSON            NOT NULL,
    on_success       JSON,
    on_failure       JSON,
    schedule         JSON            NOT NULL,
    misfire_policy   VARCHAR(32)     NOT NULL,
    max_catch_up     INT             NOT NULL,
    overlap_policy   VARCHAR(32)     NOT NULL,
    business_key     VARBINARY(1020),
    declared         BOOLEAN         NOT NULL,
    paused           BOOLEAN         NOT NULL DEFAULT FALSE,
    next_fire_time   DATETIME(6),
    last_fire_time   DATETIME(6),
    last_job_id      BINARY(16),
    fired_count      BIGINT          NOT NULL DEFAULT 0,
    skipped_count    BIGINT          NOT NULL DEFAULT 0,
    version          BIGINT          NOT NULL DEFAULT 0,
    created_at       DATETIME(6)     NOT NULL,
    updated_at       DATETIME(6)     NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
CREATE INDEX idx_recurring_due ON scheduler_recurring_job (paused, next_fire_time);

-- Schedules that were cancelled or retired.
CREATE TABLE scheduler_recurring_job_archive (
    recurring_id   BINARY(16)      NOT NULL PRIMARY KEY,
    snapshot       JSON            NOT NULL,
    archived_at    DATETIME(6)     NOT NULL,
    archive_reason VARCHAR(32)     NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
CREATE INDEX idx_recurring_archived ON scheduler_recurring_job_archive (archived_at);
