-- What handlers wrote down, found by job. Lines of an attempt that are written together, with numbers from seq to seq_last, share
-- a row: most of what a line costs is its row. Their highest level and latest time stand beside them, so that rows are passed
-- over or deleted unread. Levels: 1 trace, 2 debug, 3 info, 4 warn, 5 error. Old lines are found by the ids of their jobs, which
-- tell when those were made; an index by time would have to take in every row.
--
-- content: [{"at": microseconds since 1970, "level": 3, "message": "…", "fields": {…}}, …]
CREATE TABLE scheduler_job_log_group (
    job_id    BINARY(16)  NOT NULL,
    version   BIGINT      NOT NULL,
    seq       INT         NOT NULL,
    seq_last  INT         NOT NULL,
    attempt   INT         NOT NULL,
    level     TINYINT     NOT NULL,
    node_id   BINARY(16)  NOT NULL,
    logged_at DATETIME(6) NOT NULL,
    content   MEDIUMTEXT  NOT NULL,
    PRIMARY KEY (job_id, version, seq)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

INSERT INTO scheduler_job_log_group (job_id, version, seq, seq_last, attempt, level, node_id, logged_at, content)
SELECT job_id, version, seq, seq, attempt, level, node_id, logged_at,
       JSON_ARRAY(JSON_OBJECT(
           'at', TIMESTAMPDIFF(MICROSECOND, TIMESTAMP '1970-01-01 00:00:00.000000', logged_at),
           'level', level, 'message', message, 'fields', JSON_EXTRACT(fields, '$')
       ))
FROM scheduler_job_log;
DROP VIEW v_scheduler_job_log;
DROP TABLE scheduler_job_log;
RENAME TABLE scheduler_job_log_group TO scheduler_job_log;

-- For people: a row per line, ids as text, levels as words. Ratchet itself does not read it.
CREATE VIEW v_scheduler_job_log AS SELECT
    LOWER(CONCAT_WS('-', SUBSTR(HEX(g.job_id), 1, 8), SUBSTR(HEX(g.job_id), 9, 4), SUBSTR(HEX(g.job_id), 13, 4), SUBSTR(HEX(g.job_id), 17, 4), SUBSTR(HEX(g.job_id), 21))) AS job_id,
    g.version,
    g.seq + l.place - 1 AS seq,
    g.attempt,
    ELT(l.level, 'TRACE', 'DEBUG', 'INFO', 'WARN', 'ERROR') AS level,
    LOWER(CONCAT_WS('-', SUBSTR(HEX(g.node_id), 1, 8), SUBSTR(HEX(g.node_id), 9, 4), SUBSTR(HEX(g.node_id), 13, 4), SUBSTR(HEX(g.node_id), 17, 4), SUBSTR(HEX(g.node_id), 21))) AS node_id,
    TIMESTAMPADD(MICROSECOND, l.at, TIMESTAMP '1970-01-01 00:00:00.000000') AS logged_at,
    l.message,
    l.fields
FROM scheduler_job_log g, JSON_TABLE(g.content, '$[*]' COLUMNS (
    place FOR ORDINALITY,
    at BIGINT PATH '$.at',
    level TINYINT PATH '$.level',
    message TEXT PATH '$.message',
    fields JSON PATH '$.fields'
)) l;
