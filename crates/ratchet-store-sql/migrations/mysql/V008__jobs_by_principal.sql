-- Jobs by the principal that they were submitted for.
CREATE INDEX idx_job_principal ON scheduler_job (caller_principal, job_id);
