-- Limits of resources. Jobs that need a permit wait in lanes of their own, so that a claim reads none of them while their
-- resource has no permit left.

ALTER TABLE scheduler_job_queue ADD COLUMN resource text NOT NULL DEFAULT '';
UPDATE scheduler_job_queue q SET resource = j.resource_name FROM scheduler_job j
    WHERE j.job_id = q.job_id AND j.resource_name IS NOT NULL;
DROP INDEX idx_queue_claim;
CREATE INDEX idx_queue_claim ON scheduler_job_queue (probation, resource, queue, kind, priority, scheduled_time, job_id)
    WHERE status = 'PENDING' AND NOT deferred;

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
