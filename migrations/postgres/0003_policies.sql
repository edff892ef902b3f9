-- Run policies. Every column has a default under which a row means what it meant before: replicas of the version before
-- go on beside newer ones, and leave the new policies to them. docs/decisions/0017-policies.md says more.

ALTER TABLE job_runs
    -- What follows a failure, for replicas that do not know the job: {attempts, delay, backoff, max_delay}; {} is nothing.
    ADD COLUMN retry         jsonb NOT NULL DEFAULT '{}',
    -- A rule about earlier runs that overlap cannot say; overlap is 'wait' then.
    ADD COLUMN earlier       text NOT NULL DEFAULT '' CHECK (earlier IN ('', 'replace', 'allow')),
    ADD COLUMN once_per      text NOT NULL DEFAULT '' CHECK (once_per IN ('', 'resource')),
    -- The job's limited tags: {tag: how many runs at a time}.
    ADD COLUMN limits        jsonb NOT NULL DEFAULT '{}',
    -- A request to the replica that holds the run.
    ADD COLUMN cancel_reason text NOT NULL DEFAULT '',
    ADD COLUMN cancel_detail jsonb NOT NULL DEFAULT '{}';

-- Small: what is due to take another run's place, what was asked to end, and what counts against limits.
CREATE INDEX job_runs_replacing ON job_runs (due_at) WHERE state = 'pending' AND earlier = 'replace';
CREATE INDEX job_runs_cancelling ON job_runs (id) WHERE state = 'running' AND cancel_reason <> '';
CREATE INDEX job_runs_limited ON job_runs (id) WHERE state = 'running' AND limits <> '{}';

-- once_per: resource. A marker outlives the history of runs, so that run_id may point to a run that was purged.
CREATE TABLE resource_markers (
    job      text COLLATE "C" NOT NULL,
    resource text COLLATE "C" NOT NULL,
    run_id   bigint NOT NULL,
    at       timestamptz NOT NULL,
    PRIMARY KEY (job, resource)
);

-- One row for each tag that ever had a limit: whoever counts the tag's runs locks it first.
CREATE TABLE tag_counters (
    tag text COLLATE "C" PRIMARY KEY
);
