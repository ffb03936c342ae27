-- The schema of Ratchet on MySQL and MariaDB.
--
-- Ids are the sixteen bytes of a UUID, times are in UTC, durations are microseconds. There are no foreign keys: every
-- write is guarded by its statement, and a check per row costs throughput. Keys, tags and names of resources are bytes,
-- because the server compares text without its trailing spaces. An index has an entry for every row: there are no
-- partial indexes. At the end are views for people.

-- === Jobs ===

-- What a job is and how it ended: one row per job, written at submit and at its end, until the archiver moves or
-- deletes it. `flow` holds flags for its ties to other jobs; `depends_on` is its batch or schedule.
-- `ended_by` is the node of the attempt that succeeded, which has no row of its own.
CREATE TABLE scheduler_job (
    job_id                BINARY(16)   NOT NULL PRIMARY KEY,
    kind                  VARCHAR(128) NOT NULL,
    queue                 VARCHAR(64)  NOT NULL,
    job_type              VARCHAR(32)  NOT NULL,
    priority              TINYINT      NOT NULL,
    payload               JSON         NOT NULL,
    params                JSON,
    tags                  JSON,
    max_retries           BIGINT       NOT NULL,
    backoff_policy        VARCHAR(32)  NOT NULL,
    backoff_param_us      BIGINT       NOT NULL,
    timeout_us            BIGINT,
    resource_name         VARCHAR(100),
    caller_principal      VARCHAR(255),
    idempotency_key       VARBINARY(1020),
    business_key          VARBINARY(1020),
    on_success            JSON,
    on_failure            JSON,
    origin                JSON,
    created_at            DATETIME(6)  NOT NULL,
    version               BIGINT       NOT NULL DEFAULT 0,
    depends_on            BINARY(16),
    superseded_by         BINARY(16),
    terminal_status       VARCHAR(16),
    terminal_error        TEXT,
    total_attempts        BIGINT       NOT NULL DEFAULT 0,
    crash_count           BIGINT       NOT NULL DEFAULT 0,
    scheduled_time        DATETIME(6),
    terminated_at         DATETIME(6),
    execution_start_time  DATETIME(6),
    execution_end_time    DATETIME(6),
    execution_duration_us BIGINT,
    queue_wait_us         BIGINT,
    ended_by              BINARY(16),
    job_result            JSON,
    flow                  SMALLINT     NOT NULL DEFAULT 0,
    workflow_id           BINARY(16),
    step_name             VARCHAR(64),
    release_delay_us      BIGINT,
    canceled_because      BINARY(16)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
-- Lists and counts of ended jobs by state, newest first.
CREATE INDEX idx_job_terminal ON scheduler_job (terminal_status, job_id);
-- Jobs that own or once owned a business key.
CREATE INDEX idx_job_business_key ON scheduler_job (business_key, job_id);
-- Jobs by the principal on whose behalf they were submitted.
CREATE INDEX idx_job_principal ON scheduler_job (caller_principal, job_id);

-- Where a live job stands: one row per job from submit until its end. A job of a limited resource has its name in
-- `resource`; other jobs have the empty string and so come first in the claim's index. `flow` repeats the flags of the
-- job; `waits_for` is the number of edges and signals that a waiting job still waits for, counted down under the row's
-- lock.
CREATE TABLE scheduler_job_queue (
    job_id             BINARY(16)     NOT NULL PRIMARY KEY,
    status             VARCHAR(16)    NOT NULL,
    probation          BOOLEAN        NOT NULL DEFAULT FALSE,
    queue              VARCHAR(64)    NOT NULL,
    kind               VARCHAR(128)   NOT NULL,
    priority           TINYINT        NOT NULL,
    scheduled_time     DATETIME(6)    NOT NULL,
    deferred           BOOLEAN        NOT NULL DEFAULT FALSE,
    deferred_until     DATETIME(6),
    business_key       VARBINARY(1020),
    version            BIGINT         NOT NULL DEFAULT 0,
    attempts           BIGINT         NOT NULL DEFAULT 0,
    crash_count        BIGINT         NOT NULL DEFAULT 0,
    picked_by          BINARY(16),
    picked_at          DATETIME(6),
    progress           DOUBLE,
    paused_from_status VARCHAR(16),
    last_error         TEXT,
    updated_at         DATETIME(6)    NOT NULL,
    flow               SMALLINT       NOT NULL DEFAULT 0,
    waits_for          INT            NOT NULL DEFAULT 0,
    resource           VARBINARY(400) NOT NULL DEFAULT ''
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
-- The claim: one range per lane (probation, resource, queue, kind, priority), read in claim order, so that its cost
-- depends neither on the number of waiting jobs nor on lanes that the claim does not ask for.
CREATE INDEX idx_queue_claim ON scheduler_job_queue (status, deferred, probation, resource, queue, kind, priority, scheduled_time, job_id);
-- Deferred jobs by due time, apart from all others, whatever time those once had. The state is left out, so that a
-- claim does not write here.
CREATE INDEX idx_queue_deferred ON scheduler_job_queue (deferred, deferred_until);
-- The jobs that a node runs (reconcile) and the jobs of dead nodes (rescue).
CREATE INDEX idx_queue_running ON scheduler_job_queue (picked_by);

-- Jobs and schedules by tag: one row per tag of each. The list of a job's own tags is in its row.
CREATE TABLE scheduler_job_tag (
    tag    VARBINARY(256) NOT NULL,
    job_id BINARY(16)     NOT NULL,
    PRIMARY KEY (tag, job_id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- The children of a batch or of a schedule: one row per child. A table of its own, because an index on `scheduler_job`
-- would have an entry for every job.
CREATE TABLE scheduler_job_child (
    parent_id BINARY(16) NOT NULL,
    job_id    BINARY(16) NOT NULL,
    PRIMARY KEY (parent_id, job_id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Attempts that have ended without success: one row per attempt, named by the version of its claim, until its job is
-- archived or deleted. The row of the job describes the attempt that succeeded; v_scheduler_job_execution
-- shows all of them.
CREATE TABLE scheduler_job_execution (
    job_id        BINARY(16)  NOT NULL,
    version       BIGINT      NOT NULL,
    attempt       BIGINT      NOT NULL,
    node_id       BINARY(16)  NOT NULL,
    status        VARCHAR(16) NOT NULL,
    started_at    DATETIME(6) NOT NULL,
    ended_at      DATETIME(6) NOT NULL,
    duration_us   BIGINT      NOT NULL,
    queue_wait_us BIGINT      NOT NULL,
    error_class   TEXT,
    error_message TEXT,
    PRIMARY KEY (job_id, version)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- === Keys ===

-- The live job, or the schedule, that owns a business key: one row per owned key.
CREATE TABLE scheduler_business_key_reservation (
    business_key VARBINARY(1020) NOT NULL PRIMARY KEY,
    owner_job_id BINARY(16)      NOT NULL,
    reserved_at  DATETIME(6)     NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- The job that was first submitted with an idempotency key: one row per key that was ever used. Rows outlive their
-- jobs.
CREATE TABLE scheduler_idempotency_key (
    idempotency_key VARBINARY(1020) NOT NULL PRIMARY KEY,
    original_job_id BINARY(16)      NOT NULL,
    reserved_at     DATETIME(6)     NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- === Workflows, batches, signals ===
-- A job that uses none of them has no row here.

-- The edges of workflows: which job waits for the end of which other, and what that end must be. One row per edge,
-- until one of its jobs is deleted.
CREATE TABLE scheduler_workflow_condition (
    parent_job_id        BINARY(16)  NOT NULL,
    child_job_id         BINARY(16)  NOT NULL,
    workflow_id          BINARY(16)  NOT NULL,
    condition_type       VARCHAR(32) NOT NULL,
    condition_expression JSON,
    description          VARCHAR(255),
    condition_priority   INT         NOT NULL,
    definition_order     INT         NOT NULL,
    exclusive            BOOLEAN     NOT NULL,
    status               VARCHAR(16) NOT NULL,
    created_at           DATETIME(6) NOT NULL,
    PRIMARY KEY (parent_job_id, child_job_id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
-- The edges to a job.
CREATE INDEX idx_condition_child ON scheduler_workflow_condition (child_job_id, parent_job_id);
-- The edges of a workflow, in the order of its definition.
CREATE INDEX idx_condition_workflow ON scheduler_workflow_condition (workflow_id, definition_order);
-- The undecided edges of a workflow.
CREATE INDEX idx_condition_open ON scheduler_workflow_condition (workflow_id, status);

-- The progress of a batch: one row per batch, as long as its parent job, which has the same id.
CREATE TABLE scheduler_batch (
    batch_id           BINARY(16)  NOT NULL PRIMARY KEY,
    total_items        BIGINT      NOT NULL,
    completed_items    BIGINT      NOT NULL DEFAULT 0,
    failed_items       BIGINT      NOT NULL DEFAULT 0,
    canceled_items     BIGINT      NOT NULL DEFAULT 0,
    child_execution_us BIGINT      NOT NULL DEFAULT 0,
    sealed             BOOLEAN     NOT NULL,
    canceling          BOOLEAN     NOT NULL DEFAULT FALSE,
    progress_hook      JSON,
    progress_every     BIGINT,
    next_progress      BIGINT,
    created_at         DATETIME(6) NOT NULL,
    updated_at         DATETIME(6) NOT NULL,
    completed_at       DATETIME(6)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
-- Batches whose children are still being canceled.
CREATE INDEX idx_batch_canceling ON scheduler_batch (canceling);

-- The signal that a job awaits, and the one that it got: one row per job that ever awaited one, as long as its job.
-- `ended` says that the job has ended without its signal.
CREATE TABLE scheduler_signal_wait (
    job_id            BINARY(16)      NOT NULL PRIMARY KEY,
    signal_key        VARBINARY(1020) NOT NULL,
    signal_timeout_us BIGINT,
    expires_at        DATETIME(6),
    payload           JSON,
    outcome           VARCHAR(16),
    rejection_reason  TEXT,
    delivered_by      VARCHAR(255),
    delivered_at      DATETIME(6),
    delivery_id       BINARY(16),
    ended             BOOLEAN         NOT NULL DEFAULT FALSE
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
-- The jobs that await a key.
CREATE INDEX idx_signal_key ON scheduler_signal_wait (signal_key, delivered_at, ended, job_id);
-- Waits by the time at which they expire.
CREATE INDEX idx_signal_expiry ON scheduler_signal_wait (delivered_at, expires_at);

-- The mailbox of a key: one row per key that is awaited or was signaled, at whose lock the sender and a job that begins
-- to wait meet. A signal that no job awaited is stored here until `kept_until`.
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

-- === Schedules ===

-- Schedules: one row per schedule.
CREATE TABLE scheduler_recurring_job (
    recurring_id   BINARY(16)   NOT NULL PRIMARY KEY,
    kind           VARCHAR(128) NOT NULL,
    queue          VARCHAR(64)  NOT NULL,
    spec           JSON         NOT NULL,
    on_success     JSON,
    on_failure     JSON,
    schedule       JSON         NOT NULL,
    misfire_policy VARCHAR(32)  NOT NULL,
    max_catch_up   INT          NOT NULL,
    overlap_policy VARCHAR(32)  NOT NULL,
    business_key   VARBINARY(1020),
    declared       BOOLEAN      NOT NULL,
    paused         BOOLEAN      NOT NULL DEFAULT FALSE,
    next_fire_time DATETIME(6),
    last_fire_time DATETIME(6),
    last_job_id    BINARY(16),
    fired_count    BIGINT       NOT NULL DEFAULT 0,
    skipped_count  BIGINT       NOT NULL DEFAULT 0,
    version        BIGINT       NOT NULL DEFAULT 0,
    created_at     DATETIME(6)  NOT NULL,
    updated_at     DATETIME(6)  NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
-- Schedules by their next fire.
CREATE INDEX idx_recurring_due ON scheduler_recurring_job (paused, next_fire_time);

-- Schedules that were canceled or retired: one row each, until their retention expires.
CREATE TABLE scheduler_recurring_job_archive (
    recurring_id   BINARY(16)  NOT NULL PRIMARY KEY,
    snapshot       JSON        NOT NULL,
    archived_at    DATETIME(6) NOT NULL,
    archive_reason VARCHAR(32) NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
-- Archived schedules by age.
CREATE INDEX idx_recurring_archived ON scheduler_recurring_job_archive (archived_at);

-- === Queues, resources, services ===

-- Queues that were ever paused: one row per queue.
CREATE TABLE scheduler_queue (
    name       VARCHAR(64) NOT NULL PRIMARY KEY,
    paused     BOOLEAN     NOT NULL,
    updated_at DATETIME(6) NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Limits of resources: the number of jobs that may run at once, one row per resource.
CREATE TABLE scheduler_resource_limit (
    resource_name  VARBINARY(400) NOT NULL PRIMARY KEY,
    max_concurrent INT            NOT NULL,
    retry_delay_us BIGINT         NOT NULL,
    by_hand        BOOLEAN        NOT NULL DEFAULT FALSE,
    updated_at     DATETIME(6)    NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Permits in use: one row per attempt that runs with a resource, from its claim until its handler has ended.
CREATE TABLE scheduler_resource_permit (
    job_id        BINARY(16)     NOT NULL,
    version       BIGINT         NOT NULL,
    resource_name VARBINARY(400) NOT NULL,
    node_id       BINARY(16)     NOT NULL,
    acquired_at   DATETIME(6)    NOT NULL,
    PRIMARY KEY (job_id, version)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
-- The permits of a resource, and which nodes use them.
CREATE INDEX idx_permit_resource ON scheduler_resource_permit (resource_name, node_id);
-- The permits of a node.
CREATE INDEX idx_permit_node ON scheduler_resource_permit (node_id);

-- Orders about the circuit breakers of services, for all nodes: one row per service. Rows stay, because nodes recognize
-- a new order by its number.
CREATE TABLE scheduler_breaker (
    service      VARBINARY(512) NOT NULL PRIMARY KEY,
    held_open    BOOLEAN        NOT NULL,
    order_number BIGINT         NOT NULL,
    ordered_at   DATETIME(6)    NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- === Nodes ===

-- Nodes: one row per incarnation, until it leaves or is removed some time after its death. `running` and
-- `clock_skew_us` are as of its last heartbeat; `services` are those whose circuit breaker is not closed there, NULL
-- while all are.
CREATE TABLE scheduler_node (
    node_id        BINARY(16)  NOT NULL PRIMARY KEY,
    name           VARCHAR(64) NOT NULL,
    node_info      JSON        NOT NULL,
    started_at     DATETIME(6) NOT NULL,
    last_heartbeat DATETIME(6) NOT NULL,
    running        BIGINT      NOT NULL,
    clock_skew_us  BIGINT,
    dead_at        DATETIME(6),
    services       JSON
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Leases of the tasks that one node of the cluster does: one row per task.
CREATE TABLE scheduler_lock (
    lock_name  VARCHAR(190) NOT NULL PRIMARY KEY,
    locked_by  BINARY(16)   NOT NULL,
    locked_at  DATETIME(6)  NOT NULL,
    expires_at DATETIME(6)  NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- === Logs and alerts ===

-- Log lines of handlers, until their retention expires or their job is deleted. Lines of an attempt that are written
-- together, at most 100 with numbers from `seq` to `seq_last`, share a row: most of what a line costs is its row. Their
-- highest level and latest time stand beside them, so that rows are skipped or deleted unread. Levels: 1 trace, 2
-- debug, 3 info, 4 warn, 5 error.
--
-- `content`: [{"at": microseconds since 1970, "level": 3, "message": "…", "fields": {…}}, …]
CREATE TABLE scheduler_job_log (
    job_id    BINARY(16)  NOT NULL,
    version   BIGINT      NOT NULL,
    seq       INT         NOT NULL,
    seq_last  INT         NOT NULL,
    attempt   INT         NOT NULL,
    level     TINYINT     NOT NULL,
    node_id   BINARY(16)  NOT NULL,
    logged_at DATETIME(6) NOT NULL,
    content   MEDIUMTEXT  NOT NULL,
    PRIMARY KEY (job_id, version, seq)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Alerts about dead letters: one row per job and error, until the job is archived or deleted.
CREATE TABLE scheduler_dlq_alert (
    job_id        BINARY(16)  NOT NULL,
    error_hash    VARCHAR(64) NOT NULL,
    alert_sent_at DATETIME(6) NOT NULL,
    alert_count   INTEGER     NOT NULL,
    PRIMARY KEY (job_id, error_hash)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- === Archive ===

-- Jobs that ended long ago, with their last attempts and their signals: one row per job, until its retention expires. A
-- table of its own, so that rarely read rows do not slow down those that every claim and settle reads.
CREATE TABLE scheduler_job_archive (
    job_id                BINARY(16)   NOT NULL PRIMARY KEY,
    kind                  VARCHAR(128) NOT NULL,
    queue                 VARCHAR(64)  NOT NULL,
    job_type              VARCHAR(32)  NOT NULL,
    priority              TINYINT      NOT NULL,
    payload               JSON         NOT NULL,
    params                JSON,
    tags                  JSON,
    max_retries           BIGINT       NOT NULL,
    backoff_policy        VARCHAR(32)  NOT NULL,
    backoff_param_us      BIGINT       NOT NULL,
    timeout_us            BIGINT,
    resource_name         VARCHAR(100),
    caller_principal      VARCHAR(255),
    idempotency_key       VARBINARY(1020),
    business_key          VARBINARY(1020),
    on_success            JSON,
    on_failure            JSON,
    origin                JSON,
    created_at            DATETIME(6)  NOT NULL,
    version               BIGINT       NOT NULL,
    depends_on            BINARY(16),
    superseded_by         BINARY(16),
    terminal_status       VARCHAR(16)  NOT NULL,
    terminal_error        TEXT,
    total_attempts        BIGINT       NOT NULL,
    crash_count           BIGINT       NOT NULL,
    scheduled_time        DATETIME(6)  NOT NULL,
    terminated_at         DATETIME(6)  NOT NULL,
    execution_start_time  DATETIME(6),
    execution_end_time    DATETIME(6),
    execution_duration_us BIGINT,
    queue_wait_us         BIGINT,
    ended_by              BINARY(16),
    job_result            JSON,
    flow                  SMALLINT     NOT NULL,
    workflow_id           BINARY(16),
    step_name             VARCHAR(64),
    release_delay_us      BIGINT,
    canceled_because      BINARY(16),
    archived_at           DATETIME(6)  NOT NULL,
    attempts              JSON,
    signal_wait           JSON
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
-- Lists, newest first.
CREATE INDEX idx_archive_status ON scheduler_job_archive (terminal_status, job_id);
CREATE INDEX idx_archive_business_key ON scheduler_job_archive (business_key, job_id);
CREATE INDEX idx_archive_depends_on ON scheduler_job_archive (depends_on, job_id);
CREATE INDEX idx_archive_principal ON scheduler_job_archive (caller_principal, job_id);
-- Archived jobs by age, for purges.
CREATE INDEX idx_archive_age ON scheduler_job_archive (archived_at);

-- Archived jobs by tag: one row per tag of each.
CREATE TABLE scheduler_job_archive_tag (
    tag    VARBINARY(256) NOT NULL,
    job_id BINARY(16)     NOT NULL,
    PRIMARY KEY (tag, job_id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- === Views ===
-- For people: ids and keys as text. Ratchet does not read them.

-- All jobs that are not archived.
CREATE VIEW v_scheduler_job AS SELECT
    LOWER(CONCAT_WS('-', SUBSTR(HEX(j.job_id), 1, 8), SUBSTR(HEX(j.job_id), 9, 4), SUBSTR(HEX(j.job_id), 13, 4), SUBSTR(HEX(j.job_id), 17, 4), SUBSTR(HEX(j.job_id), 21))) AS job_id,
    j.kind,
    j.queue,
    COALESCE(q.status, j.terminal_status) AS status,
    j.priority,
    CONVERT(j.business_key USING utf8mb4) AS business_key,
    CONVERT(j.idempotency_key USING utf8mb4) AS idempotency_key,
    j.tags,
    j.payload,
    j.params,
    j.created_at,
    COALESCE(q.scheduled_time, j.scheduled_time) AS scheduled_time,
    COALESCE(q.attempts, j.total_attempts) AS attempts,
    j.max_retries,
    IF(q.picked_by IS NULL, NULL, LOWER(CONCAT_WS('-', SUBSTR(HEX(q.picked_by), 1, 8), SUBSTR(HEX(q.picked_by), 9, 4), SUBSTR(HEX(q.picked_by), 13, 4), SUBSTR(HEX(q.picked_by), 17, 4), SUBSTR(HEX(q.picked_by), 21)))) AS picked_by,
    q.picked_at,
    q.progress,
    CASE WHEN q.job_id IS NULL THEN j.terminal_error ELSE q.last_error END AS error,
    j.job_result,
    j.terminated_at,
    j.execution_duration_us,
    j.queue_wait_us
FROM scheduler_job j LEFT JOIN scheduler_job_queue q ON q.job_id = j.job_id;

-- All attempts that have ended: those with a row of their own, and those that the row of their job describes.
CREATE VIEW v_scheduler_job_execution AS SELECT
    LOWER(CONCAT_WS('-', SUBSTR(HEX(job_id), 1, 8), SUBSTR(HEX(job_id), 9, 4), SUBSTR(HEX(job_id), 13, 4), SUBSTR(HEX(job_id), 17, 4), SUBSTR(HEX(job_id), 21))) AS job_id,
    version,
    attempt,
    LOWER(CONCAT_WS('-', SUBSTR(HEX(node_id), 1, 8), SUBSTR(HEX(node_id), 9, 4), SUBSTR(HEX(node_id), 13, 4), SUBSTR(HEX(node_id), 17, 4), SUBSTR(HEX(node_id), 21))) AS node_id,
    status,
    started_at,
    ended_at,
    duration_us,
    queue_wait_us,
    error_class,
    error_message
FROM scheduler_job_execution
UNION ALL SELECT
    LOWER(CONCAT_WS('-', SUBSTR(HEX(job_id), 1, 8), SUBSTR(HEX(job_id), 9, 4), SUBSTR(HEX(job_id), 13, 4), SUBSTR(HEX(job_id), 17, 4), SUBSTR(HEX(job_id), 21))),
    version - 1,
    total_attempts,
    LOWER(CONCAT_WS('-', SUBSTR(HEX(ended_by), 1, 8), SUBSTR(HEX(ended_by), 9, 4), SUBSTR(HEX(ended_by), 13, 4), SUBSTR(HEX(ended_by), 17, 4), SUBSTR(HEX(ended_by), 21))),
    terminal_status,
    execution_start_time,
    execution_end_time,
    execution_duration_us,
    queue_wait_us,
    NULL,
    NULL
FROM scheduler_job WHERE ended_by IS NOT NULL;

-- All nodes.
CREATE VIEW v_scheduler_node AS SELECT
    LOWER(CONCAT_WS('-', SUBSTR(HEX(node_id), 1, 8), SUBSTR(HEX(node_id), 9, 4), SUBSTR(HEX(node_id), 13, 4), SUBSTR(HEX(node_id), 17, 4), SUBSTR(HEX(node_id), 21))) AS node_id,
    name,
    node_info,
    started_at,
    last_heartbeat,
    running,
    clock_skew_us,
    dead_at,
    services
FROM scheduler_node;

-- All log lines, a row each, with levels as words.
CREATE VIEW v_scheduler_job_log AS SELECT
    LOWER(CONCAT_WS('-', SUBSTR(HEX(g.job_id), 1, 8), SUBSTR(HEX(g.job_id), 9, 4), SUBSTR(HEX(g.job_id), 13, 4), SUBSTR(HEX(g.job_id), 17, 4), SUBSTR(HEX(g.job_id), 21))) AS job_id,
    g.version,
    g.seq + l.place - 1 AS seq,
    g.attempt,
    ELT(l.level, 'TRACE', 'DEBUG', 'INFO', 'WARN', 'ERROR') AS level,
    LOWER(CONCAT_WS('-', SUBSTR(HEX(g.node_id), 1, 8), SUBSTR(HEX(g.node_id), 9, 4), SUBSTR(HEX(g.node_id), 13, 4), SUBSTR(HEX(g.node_id), 17, 4), SUBSTR(HEX(g.node_id), 21))) AS node_id,
    TIMESTAMPADD(MICROSECOND, l.at, TIMESTAMP '1970-01-01 00:00:00.000000') AS logged_at,
    l.message,
    l.fields
FROM scheduler_job_log g, JSON_TABLE(g.content, '$[*]' COLUMNS (
    place FOR ORDINALITY,
    at BIGINT PATH '$.at',
    level TINYINT PATH '$.level',
    message TEXT PATH '$.message',
    fields JSON PATH '$.fields'
)) l;
