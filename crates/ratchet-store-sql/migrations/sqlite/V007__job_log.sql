-- What handlers wrote down: one row per line, found by job. Old lines are found by the ids of their jobs, which tell when those
-- were made; an index by time would have to take in every line. Levels: 1 trace, 2 debug, 3 info, 4 warn, 5 error.
CREATE TABLE scheduler_job_log (
    job_id    BLOB    NOT NULL,
    version   INTEGER NOT NULL,
    seq       INTEGER NOT NULL,
    attempt   INTEGER NOT NULL,
    level     INTEGER NOT NULL,
    node_id   BLOB    NOT NULL,
    logged_at INTEGER NOT NULL,
    message   TEXT    NOT NULL,
    fields    TEXT,
    PRIMARY KEY (job_id, version, seq)
) WITHOUT ROWID;
