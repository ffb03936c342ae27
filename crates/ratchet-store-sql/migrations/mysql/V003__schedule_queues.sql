-- Queues of schedules and keys of signals that are used for years: what is over is not looked at again.

-- The edges of a workflow that are not decided.
CREATE INDEX idx_condition_open ON scheduler_workflow_condition (workflow_id, status);

-- Whether the job is known to have ended without its signal.
ALTER TABLE scheduler_signal_wait ADD COLUMN ended BOOLEAN NOT NULL DEFAULT FALSE;
DROP INDEX idx_signal_key ON scheduler_signal_wait;
CREATE INDEX idx_signal_key ON scheduler_signal_wait (signal_key, delivered_at, ended, job_id);
