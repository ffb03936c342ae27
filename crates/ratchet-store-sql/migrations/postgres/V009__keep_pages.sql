-- Jobs come and go, and what archived ones leave is soon needed again. Giving it back to the disk instead makes every commit wait
-- meanwhile, for tenths of a second where files are large.
ALTER TABLE scheduler_job SET (vacuum_truncate = off);
ALTER TABLE scheduler_job_queue SET (vacuum_truncate = off);
ALTER TABLE scheduler_job_execution SET (vacuum_truncate = off);
