-- What people ordered about the circuit breakers of services, for all nodes. Rows stay: nodes see by the number what is new.
CREATE TABLE scheduler_breaker (
    service      VARBINARY(512) NOT NULL PRIMARY KEY,
    held_open    BOOLEAN        NOT NULL,
    order_number BIGINT         NOT NULL,
    ordered_at   DATETIME(6)    NOT NULL
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;
