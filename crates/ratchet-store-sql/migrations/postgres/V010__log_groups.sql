-- What handlers wrote down, found by job. Lines of an attempt that are written together, with numbers from seq to seq_last, share
-- a row: most of what a line costs is its row. Their highest level and latest time stand beside them, so that rows are passed
-- over or deleted unread. Levels: 1 trace, 2 debug, 3 info, 4 warn, 5 error. Old lines are found by the ids of their jobs, which
-- tell when those were made; an index by time would have to take in every row.
--
-- content: [{"at": microseconds since 1970, "level": 3, "message": "…", "fields": {…}}, …]
CREATE TABLE scheduler_job_log_group (
    job_id    uuid        NOT NULL,
    version   bigint      NOT NULL,
    seq       integer     NOT NULL,
    seq_last  integer     NOT NULL,
    attempt   integer     NOT NULL,
    level     smallint    NOT NULL,
    node_id   uuid        NOT NULL,
    logged_at timestamptz NOT NULL,
    content   text        NOT NULL,
    PRIMARY KEY (job_id, version, seq)
);

INSERT INTO scheduler_job_log_group (job_id, version, seq, seq_last, attempt, level, node_id, logged_at, content)
SELECT job_id, version, seq, seq, attempt, level, node_id, logged_at,
       json_build_array(json_build_object(
           'at', (extract(epoch FROM logged_at) * 1000000)::bigint, 'level', level, 'message', message, 'fields', fields
       ))::text
FROM scheduler_job_log;
DROP TABLE scheduler_job_log;
ALTER TABLE scheduler_job_log_group RENAME TO scheduler_job_log;
ALTER INDEX scheduler_job_log_group_pkey RENAME TO scheduler_job_log_pkey;
