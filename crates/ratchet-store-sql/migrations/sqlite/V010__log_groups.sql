-- What handlers wrote down, found by job. Lines of an attempt that are written together, with numbers from seq to seq_last, share
-- a row: most of what a line costs is its row. Their highest level and latest time stand beside them, so that rows are passed
-- over or deleted unread. Levels: 1 trace, 2 debug, 3 info, 4 warn, 5 error. Old lines are found by the ids of their jobs, which
-- tell when those were made; an index by time would have to take in every row.
--
-- content: [{"at": microseconds since 1970, "level": 3, "message": "…", "fields": {…}}, …]
ALTER TABLE scheduler_job_log RENAME TO scheduler_job_log_line;
CREATE TABLE scheduler_job_log (
    job_id    BLOB    NOT NULL,
    version   INTEGER NOT NULL,
    seq       INTEGER NOT NULL,
    seq_last  INTEGER NOT NULL,
    attempt   INTEGER NOT NULL,
    level     INTEGER NOT NULL,
    node_id   BLOB    NOT NULL,
    logged_at INTEGER NOT NULL,
    content   TEXT    NOT NULL,
    PRIMARY KEY (job_id, version, seq)
) WITHOUT ROWID;

INSERT INTO scheduler_job_log (job_id, version, seq, seq_last, attempt, level, node_id, logged_at, content)
SELECT job_id, version, seq, seq, attempt, level, node_id, logged_at,
       json_array(json_object('at', logged_at, 'level', level, 'message', message, 'fields', json(fields)))
FROM scheduler_job_log_line;
DROP TABLE scheduler_job_log_line;
