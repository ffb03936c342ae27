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
