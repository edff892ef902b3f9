-- Run policies. Every column has a default under which a row means what it meant before: replicas of the version before
-- go on beside newer ones, and leave the new policies to them. docs/decisions/0017-policies.md says more.

-- What follows a failure, for replicas that do not know the job: {attempts, delay, backoff, max_delay}; {} is nothing.
ALTER TABLE job_runs ADD COLUMN retry TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(retry));
-- A rule about earlier runs that overlap cannot say; overlap is 'wait' then.
ALTER TABLE job_runs ADD COLUMN earlier TEXT NOT NULL DEFAULT '' CHECK (earlier IN ('', 'replace', 'allow'));
ALTER TABLE job_runs ADD COLUMN once_per TEXT NOT NULL DEFAULT '' CHECK (once_per IN ('', 'resource'));
-- The job's limited tags: {tag: how many runs at a time}.
ALTER TABLE job_runs ADD COLUMN limits TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(limits));
-- A request to the replica that holds the run.
ALTER TABLE job_runs ADD COLUMN cancel_reason TEXT NOT NULL DEFAULT '';
ALTER TABLE job_runs ADD COLUMN cancel_detail TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(cancel_detail));

-- Small: what is due to take another run's place, what was asked to end, and what counts against limits.
CREATE INDEX job_runs_replacing ON job_runs (due_at) WHERE state = 'pending' AND earlier = 'replace';
CREATE INDEX job_runs_cancelling ON job_runs (id) WHERE state = 'running' AND cancel_reason <> '';
CREATE INDEX job_runs_limited ON job_runs (id) WHERE state = 'running' AND limits <> '{}';

-- once_per: resource. A marker outlives the history of runs, so that run_id may point to a run that was purged.
CREATE TABLE resource_markers (
    job      TEXT NOT NULL,
    resource TEXT NOT NULL,
    run_id   INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    PRIMARY KEY (job, resource)
) STRICT, WITHOUT ROWID;
