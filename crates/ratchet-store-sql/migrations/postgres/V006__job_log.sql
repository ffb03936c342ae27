-- What handlers wrote down: one row per line, found by job. Old lines are found by the ids of their jobs, which tell when those
-- were made; an index by time would have to take in every line. Levels: 1 trace, 2 debug, 3 info, 4 warn, 5 error.
CREATE TABLE scheduler_job_log (
    job_id    uuid        NOT NULL,
    version   bigint      NOT NULL,
    seq       integer     NOT NULL,
    attempt   integer     NOT NULL,
    level     smallint    NOT NULL,
    node_id   uuid        NOT NULL,
    logged_at timestamptz NOT NULL,
    message   text        NOT NULL,
    fields    jsonb,
    PRIMARY KEY (job_id, version, seq)
);
