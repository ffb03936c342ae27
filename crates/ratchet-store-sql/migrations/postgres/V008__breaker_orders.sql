-- What people ordered about the circuit breakers of services, for all nodes. Rows stay: nodes see by the number what is new.
CREATE TABLE scheduler_breaker (
    service      text        NOT NULL PRIMARY KEY,
    held_open    boolean     NOT NULL,
    order_number bigint      NOT NULL,
    ordered_at   timestamptz NOT NULL
);
