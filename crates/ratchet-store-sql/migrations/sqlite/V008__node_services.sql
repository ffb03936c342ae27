-- Services whose circuit breaker is not closed on the node, as JSON; NULL while all are closed, as they nearly always are.
ALTER TABLE scheduler_node ADD COLUMN services TEXT;
