-- What a node says of itself with every heartbeat: how many jobs it runs, and how far its clock is ahead of the database's.
ALTER TABLE scheduler_node ADD COLUMN running INTEGER NOT NULL DEFAULT 0;
ALTER TABLE scheduler_node ADD COLUMN clock_skew_us INTEGER;
