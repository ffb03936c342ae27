-- The whole schema of Ratchet on MySQL and MariaDB, for a clean install by hand. The migrations give the same; a test compares them.
--
-- Ids are the sixteen bytes of a UUID, times are in UTC, durations are microseconds. There are no foreign keys: every
-- write goes through guarded statements, and a check per row costs throughput. Keys and tags are bytes, because text is
-- compared here without its trailing spaces.

-- What a job is, and what became of it: written when it is submitted and when it ends.
CREATE TABLE scheduler_job (
    job_id                BINARY(16)      NOT NULL PRIMARY KEY,
    kind                  VARCHAR(128)    NOT NULL,
    queue                 VARCHAR(64)     NOT NULL,
    job_type              VARCHAR(32)     NOT NULL,
    priority              TINYINT         NOT NULL,
    payload               JSON            NOT NULL,
    params                JSON,
    tags                  JSON,
    max_retries           BIGINT          NOT NULL,
    backoff_policy        VARCHAR(32)     NOT NULL,
    backoff_param_us      BIGINT          NOT NULL,
    timeout_us            BIGINT,
    resource_name         VARCHAR(100),
    caller_principal      VARCHAR(255),
    idempotency_key       VARBINARY(1020),
    business_key          VARBINARY(1020),
    on_success            JSON,
    on_failure            JSON,
    origin                JSON,
    created_at            DATETIME(6)     NOT NULL,
    version               BIGINT          NOT NULL DEFAULT 0,
    depends_on            BINARY(16),
    superseded_by         BINARY(16),
    terminal_status       VARCHAR(16),
    terminal_error        TEXT,
    total_attempts        BIGINT          NOT NULL DEFAULT 0,
    crash_count           BIGINT          NOT NULL DEFAULT 0,
    scheduled_time        DATETIME(6),
    terminated_at         DATETIME(6),
    execution_start_time  DATETIME(6),
    execution_end_time    DATETIME(6),
    execution_duration_us BIGINT,
    queue_wait_us         BIGINT,
    job_result            JSON,
    flow                  SMALLINT NOT NULL DEFAULT 0,
    workflow_id           BINARY(16),
    step_name             VARCHAR(64),
    release_delay_us      BIGINT,
    canceled_because      BINARY(16),
    -- Lists of the dead letter queue and of other ended jobs, newest first; counts by state.
    INDEX idx_job_terminal (terminal_status, job_id),
    -- Jobs that hold or once held a business key.
    INDEX idx_job_business_key (business_key, job_id),
    -- Jobs by the principal that they were submitted for.
    INDEX idx_job_principal (caller_principal, job_id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Where a live job stands: one row from submit until the end.
CREATE TABLE scheduler_job_queue (
    job_id             BINARY(16)      NOT NULL PRIMARY KEY,
    status             VARCHAR(16)     NOT NULL,
    probation          BOOLEAN         NOT NULL DEFAULT FALSE,
    queue              VARCHAR(64)     NOT NULL,
    kind               VARCHAR(128)    NOT NULL,
    priority           TINYINT         NOT NULL,
    scheduled_time     DATETIME(6)     NOT NULL,
    deferred           BOOLEAN         NOT NULL DEFAULT FALSE,
    deferred_until     DATETIME(6),
    business_key       VARBINARY(1020),
    version            BIGINT          NOT NULL DEFAULT 0,
    attempts           BIGINT          NOT NULL DEFAULT 0,
    crash_count        BIGINT          NOT NULL DEFAULT 0,
    picked_by          BINARY(16),
    picked_at          DATETIME(6),
    progress           DOUBLE,
    paused_from_status VARCHAR(16),
    last_error         TEXT,
    updated_at         DATETIME(6)     NOT NULL,
    flow               SMALLINT NOT NULL DEFAULT 0,
    waits_for          INT NOT NULL DEFAULT 0,
    resource           VARBINARY(400) NOT NULL DEFAULT '',
    -- The claim: one range per lane (probation, resource, queue, kind, priority), read in claim order, so that its cost does not
    -- depend on how many jobs wait, here or in lanes that nobody asks for.
    INDEX idx_queue_claim (status, deferred, probation, resource, queue, kind, priority, scheduled_time, job_id),
    -- Deferred jobs, to find those whose time has come. Other jobs come apart from them, whatever time they once had; the
    -- state is left out, so that a claim does not write here.
    INDEX idx_queue_deferred (deferred, deferred_until),
    -- What a node runs (reconcile) and whose node is dead (orphans).
    INDEX idx_queue_running (picked_by)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Jobs by tag; a job's own list of tags is in its row.
CREATE TABLE scheduler_job_tag (
    tag    VARBINARY(256) NOT NULL,
    job_id BINARY(16)     NOT NULL,
    PRIMARY KEY (tag, job_id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- One row per attempt; the version of the claim names it.
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

-- Which live job holds a business key.
CREATE TABLE scheduler_business_key_reservation (
    business_key VARBINARY(1020) NOT NULL PRIMARY KEY,
    owner_job_id BINARY(16)      NOT NULL,
    reserved_at  DATETIME(6)     NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Which job was first submitted with an idempotency key; outlives the job.
CREATE TABLE scheduler_idempotency_key (
    idempotency_key VARBINARY(1020) NOT NULL PRIMARY KEY,
    original_job_id BINARY(16)      NOT NULL,
    reserved_at     DATETIME(6)     NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- How many jobs that name a resource may run at once.
CREATE TABLE scheduler_resource_limit (
    resource_name  VARBINARY(400) NOT NULL PRIMARY KEY,
    max_concurrent INT            NOT NULL,
    retry_delay_us BIGINT         NOT NULL,
    by_hand        BOOLEAN        NOT NULL DEFAULT FALSE,
    updated_at     DATETIME(6)    NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- One row per attempt that runs with a resource, from its claim until its handler has ended.
CREATE TABLE scheduler_resource_permit (
    job_id        BINARY(16)     NOT NULL,
    version       BIGINT         NOT NULL,
    resource_name VARBINARY(400) NOT NULL,
    node_id       BINARY(16)     NOT NULL,
    acquired_at   DATETIME(6)    NOT NULL,
    PRIMARY KEY (job_id, version)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE INDEX idx_permit_resource ON scheduler_resource_permit (resource_name, node_id);
CREATE INDEX idx_permit_node ON scheduler_resource_permit (node_id);

-- Queues that somebody has paused or resumed.
CREATE TABLE scheduler_queue (
    name       VARCHAR(64) NOT NULL PRIMARY KEY,
    paused     BOOLEAN     NOT NULL,
    updated_at DATETIME(6) NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- One row per incarnation of a node.
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

-- Leases of cluster singletons.
CREATE TABLE scheduler_lock (
    lock_name  VARCHAR(190) NOT NULL PRIMARY KEY,
    locked_by  BINARY(16)   NOT NULL,
    locked_at  DATETIME(6)  NOT NULL,
    expires_at DATETIME(6)  NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Alerts about jobs in the dead letter queue, one row per job and error.
CREATE TABLE scheduler_dlq_alert (
    job_id        BINARY(16)  NOT NULL,
    error_hash    VARCHAR(64) NOT NULL,
    alert_sent_at DATETIME(6) NOT NULL,
    alert_count   INTEGER     NOT NULL,
    PRIMARY KEY (job_id, error_hash)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- For people: ids as text, keys as text. Ratchet itself reads none of these.

-- All jobs, live and ended.
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

-- All attempts.
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
FROM scheduler_job_execution;

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

-- The children of a batch or of a schedule. A table of its own: an index here has an entry for every job, also for those
-- that belong to nothing.
CREATE TABLE scheduler_job_child (
    parent_id BINARY(16) NOT NULL,
    job_id    BINARY(16) NOT NULL,
    PRIMARY KEY (parent_id, job_id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

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
-- The edges of a workflow that are not decided.
CREATE INDEX idx_condition_open ON scheduler_workflow_condition (workflow_id, status);

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
    delivery_id      BINARY(16),
    ended            BOOLEAN         NOT NULL DEFAULT FALSE
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
CREATE INDEX idx_signal_key ON scheduler_signal_wait (signal_key, delivered_at, ended, job_id);
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

-- Jobs that ended long ago: what they were, what became of them, their last attempts and their signals. A table of its
-- own, so that what is looked at seldom makes nothing slower that is looked at often.
CREATE TABLE scheduler_job_archive (
    job_id                BINARY(16)      NOT NULL PRIMARY KEY,
    kind                  VARCHAR(128)    NOT NULL,
    queue                 VARCHAR(64)     NOT NULL,
    job_type              VARCHAR(32)     NOT NULL,
    priority              TINYINT         NOT NULL,
    payload               JSON            NOT NULL,
    params                JSON,
    tags                  JSON,
    max_retries           BIGINT          NOT NULL,
    backoff_policy        VARCHAR(32)     NOT NULL,
    backoff_param_us      BIGINT          NOT NULL,
    timeout_us            BIGINT,
    resource_name         VARCHAR(100),
    caller_principal      VARCHAR(255),
    idempotency_key       VARBINARY(1020),
    business_key          VARBINARY(1020),
    on_success            JSON,
    on_failure            JSON,
    origin                JSON,
    created_at            DATETIME(6)     NOT NULL,
    version               BIGINT          NOT NULL,
    depends_on            BINARY(16),
    superseded_by         BINARY(16),
    terminal_status       VARCHAR(16)     NOT NULL,
    terminal_error        TEXT,
    total_attempts        BIGINT          NOT NULL,
    crash_count           BIGINT          NOT NULL,
    scheduled_time        DATETIME(6)     NOT NULL,
    terminated_at         DATETIME(6)     NOT NULL,
    execution_start_time  DATETIME(6),
    execution_end_time    DATETIME(6),
    execution_duration_us BIGINT,
    queue_wait_us         BIGINT,
    job_result            JSON,
    flow                  SMALLINT        NOT NULL,
    workflow_id           BINARY(16),
    step_name             VARCHAR(64),
    release_delay_us      BIGINT,
    canceled_because      BINARY(16),
    archived_at           DATETIME(6)     NOT NULL,
    attempts              JSON,
    signal_wait           JSON
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
-- Lists, newest first.
CREATE INDEX idx_archive_status ON scheduler_job_archive (terminal_status, job_id);
CREATE INDEX idx_archive_business_key ON scheduler_job_archive (business_key, job_id);
CREATE INDEX idx_archive_depends_on ON scheduler_job_archive (depends_on, job_id);
CREATE INDEX idx_archive_principal ON scheduler_job_archive (caller_principal, job_id);
-- What has been here long enough to be deleted.
CREATE INDEX idx_archive_age ON scheduler_job_archive (archived_at);

-- Archived jobs by tag.
CREATE TABLE scheduler_job_archive_tag (
    tag    VARBINARY(256) NOT NULL,
    job_id BINARY(16)     NOT NULL,
    PRIMARY KEY (tag, job_id)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- What handlers wrote down, found by job. Lines of an attempt that are written together, with numbers from seq to seq_last, share
-- a row: most of what a line costs is its row. Their highest level and latest time stand beside them, so that rows are passed
-- over or deleted unread. Levels: 1 trace, 2 debug, 3 info, 4 warn, 5 error. Old lines are found by the ids of their jobs, which
-- tell when those were made; an index by time would have to take in every row.
--
-- content: [{"at": microseconds since 1970, "level": 3, "message": "…", "fields": {…}}, …]
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

-- For people: a row per line, ids as text, levels as words. Ratchet itself does not read it.
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

-- What people ordered about the circuit breakers of services, for all nodes. Rows stay: nodes see by the number what is new.
CREATE TABLE scheduler_breaker (
    service      VARBINARY(512) NOT NULL PRIMARY KEY,
    held_open    BOOLEAN        NOT NULL,
    order_number BIGINT         NOT NULL,
    ordered_at   DATETIME(6)    NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Which steps of the schema this database has.
CREATE TABLE ratchet_schema_version (
    version     INTEGER      NOT NULL PRIMARY KEY,
    description VARCHAR(255) NOT NULL,
    checksum    CHAR(64)     NOT NULL,
    applied_at  DATETIME(6)  NOT NULL,
    dirty       BOOLEAN      NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
INSERT INTO ratchet_schema_version (version, description, checksum, applied_at, dirty)
VALUES (1, 'jobs', '9a3c18d305a61f330531702819b259a647e6661a21245a45cf5ad65bcfee80b7', UTC_TIMESTAMP(6), FALSE),
       (2, 'composition', 'ff106a71d8a671a155b6d90d1372d62893d77908aeece02bcb39f57128236172', UTC_TIMESTAMP(6), FALSE),
       (3, 'queues of schedules', 'dc315c82ce9a073668c1d8bc73e86e6784cf7fb8c427a50bbdd89fe66e21790f', UTC_TIMESTAMP(6), FALSE),
       (4, 'archive', '9a65bfbf1b18af69b7bd301725ddc0b5e63226d3ea75303ed081b7e7f46badf3', UTC_TIMESTAMP(6), FALSE),
       (5, 'permits', '3f0a16476d3dd27a16405dbfdb518016c605d0a809faf201ab4295077cb76477', UTC_TIMESTAMP(6), FALSE),
       (6, 'job log', 'ee91340694b7f6cc7330fed04c5bfe2af6cd4a6298a9d73ad34ac5c85d065863', UTC_TIMESTAMP(6), FALSE),
       (7, 'node services', '329c40b78090ee4901266563e4a66a744f9e582c6d610f5efa5c94edeb6365bb', UTC_TIMESTAMP(6), FALSE),
       (8, 'jobs by principal', 'bb1344877de5001912de6ca67841f874e18b3b7790dcb43cfea6ee03c940b007', UTC_TIMESTAMP(6), FALSE),
       (9, 'breaker orders', '18a5c7821fa990ffc97b364c5fde8d4d38ce93298b68ed7353bbb563ed52e087', UTC_TIMESTAMP(6), FALSE),
       (10, 'log groups', 'f26aaa878b508ffc808264ceb365930233fd3b0de8898984d297262df9399d2a', UTC_TIMESTAMP(6), FALSE);
