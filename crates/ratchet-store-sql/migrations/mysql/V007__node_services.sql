-- Services whose circuit breaker is not closed on the node; NULL while all are closed, as they nearly always are.
ALTER TABLE scheduler_node ADD COLUMN services JSON;

CREATE OR REPLACE VIEW v_scheduler_node AS SELECT
    LOWER(CONCAT_WS('-', SUBSTR(HEX(node_id), 1, 8), SUBSTR(HEX(node_id), 9, 4), SUBSTR(HEX(node_id), 13, 4), SUBSTR(HEX(node_id), 17, 4), SUBSTR(HEX(node_id), 21))) AS node_id,
    name,
    node_info,
    started_at,
    last_heartbeat,
    running,
    clock_skew_us,
    dead_at,
    services
FROM scheduler_node;
