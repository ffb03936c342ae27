-- What handlers wrote down: one row per line, found by job. Old lines are found by the ids of their jobs, which tell when those
-- were made; an index by time would have to take in every line. Levels: 1 trace, 2 debug, 3 info, 4 warn, 5 error.
CREATE TABLE scheduler_job_log (
    job_id    BINARY(16)  NOT NULL,
    version   BIGINT      NOT NULL,
    seq       INT         NOT NULL,
    attempt   INT         NOT NULL,
    level     TINYINT     NOT NULL,
    node_id   BINARY(16)  NOT NULL,
    logged_at DATETIME(6) NOT NULL,
    message   TEXT        NOT NULL,
    fields    JSON,
    PRIMARY KEY (job_id, version, seq)
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- For people: ids as text, levels as words. Ratchet itself does not read it.
CREATE VIEW v_scheduler_job_log AS SELECT
    LOWER(CONCAT_WS('-', SUBSTR(HEX(job_id), 1, 8), SUBSTR(HEX(job_id), 9, 4), SUBSTR(HEX(job_id), 13, 4), SUBSTR(HEX(job_id), 17, 4), SUBSTR(HEX(job_id), 21))) AS job_id,
    version,
    seq,
    attempt,
    ELT(level, 'TRACE', 'DEBUG', 'INFO', 'WARN', 'ERROR') AS level,
    LOWER(CONCAT_WS('-', SUBSTR(HEX(node_id), 1, 8), SUBSTR(HEX(node_id), 9, 4), SUBSTR(HEX(node_id), 13, 4), SUBSTR(HEX(node_id), 17, 4), SUBSTR(HEX(node_id), 21))) AS node_id,
    logged_at,
    message,
    fields
FROM scheduler_job_log;
