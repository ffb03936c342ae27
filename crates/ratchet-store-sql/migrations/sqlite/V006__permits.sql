-- Limits of resources. Jobs that need a permit wait in lanes of their own, so that a claim reads none of them while their
-- resource has no permit left.

ALTER TABLE scheduler_job_queue ADD COLUMN resource TEXT NOT NULL DEFAULT '';
UPDATE scheduler_job_queue SET resource = (SELECT j.resource_name FROM scheduler_job j WHERE j.job_id = scheduler_job_queue.job_id)
    WHERE EXISTS (SELECT 1 FROM scheduler_job j WHERE j.job_id = scheduler_job_queue.job_id AND j.resource_name IS NOT NULL);
DROP INDEX idx_queue_claim;
CREATE INDEX idx_queue_claim ON scheduler_job_queue (probation, resource, queue, kind, priority, scheduled_time, job_id)
    WHERE status = 'PENDING' AND deferred = 0;

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
