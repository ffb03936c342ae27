-- Queues of schedules and keys of signals that are used for years: what is over is not looked at again.

-- The edges that are not decided. As many as jobs wait.
CREATE INDEX idx_condition_open ON scheduler_workflow_condition (workflow_id) WHERE status = 'OPEN';

-- Whether the job is known to have ended without its signal.
ALTER TABLE scheduler_signal_wait ADD COLUMN ended INTEGER NOT NULL DEFAULT 0;
DROP INDEX idx_signal_key;
CREATE INDEX idx_signal_key ON scheduler_signal_wait (signal_key, job_id) WHERE delivered_at IS NULL AND ended = 0;
