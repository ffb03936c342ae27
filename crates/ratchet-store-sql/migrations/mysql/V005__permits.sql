-- Limits of resources. Jobs that need a permit wait in lanes of their own, so that a claim reads none of them while their
-- resource has no permit left.

ALTER TABLE scheduler_job_queue ADD COLUMN resource VARBINARY(400) NOT NULL DEFAULT '';
UPDATE scheduler_job_queue q JOIN scheduler_job j ON j.job_id = q.job_id
    SET q.resource = j.resource_name WHERE j.resource_name IS NOT NULL;
DROP INDEX idx_queue_claim ON scheduler_job_queue;
CREATE INDEX idx_queue_claim ON scheduler_job_queue (status, deferred, probation, resource, queue, kind, priority, scheduled_time, job_id);

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
