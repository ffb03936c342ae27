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
