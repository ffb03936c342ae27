-- What people ordered about the circuit breakers of services, for all nodes. Rows stay: nodes see by the number what is new.
CREATE TABLE scheduler_breaker (
    service      TEXT    NOT NULL PRIMARY KEY,
    held_open    INTEGER NOT NULL,
    order_number INTEGER NOT NULL,
    ordered_at   INTEGER NOT NULL
) WITHOUT ROWID;
