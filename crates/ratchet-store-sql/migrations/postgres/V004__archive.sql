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
