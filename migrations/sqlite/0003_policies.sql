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
-- Other jobs come after this one, and nobody has looked yet what follows the run; cleared when somebody has.
ALTER TABLE job_runs ADD COLUMN follow INTEGER NOT NULL DEFAULT 0 CHECK (follow IN (0, 1));
-- The date in the run's resource; '' when there is none.
ALTER TABLE job_runs ADD COLUMN period TEXT NOT NULL DEFAULT '';
-- What the run came after: {kind, runs: [{job, run_id, outcome, reason}]}; {} is nothing.
ALTER TABLE job_runs ADD COLUMN follows TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(follows));
-- The labels that a replica must have to run it: {label: [values]}.
ALTER TABLE job_runs ADD COLUMN only_on TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(only_on));

ALTER TABLE replicas ADD COLUMN labels TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(labels));

-- Small: what is due to take another run's place, what was asked to end, and what counts against limits.
CREATE INDEX job_runs_replacing ON job_runs (due_at) WHERE state = 'pending' AND earlier = 'replace';
CREATE INDEX job_runs_cancelling ON job_runs (id) WHERE state = 'running' AND cancel_reason <> '';
CREATE INDEX job_runs_limited ON job_runs (id) WHERE state = 'running' AND limits <> '{}';
CREATE INDEX job_runs_follow ON job_runs (id) WHERE follow AND state = 'finished';
-- Which runs of a job are running; it serves as well to find all of them.
DROP INDEX job_runs_running;
CREATE INDEX job_runs_running ON job_runs (job, id) WHERE state = 'running';
CREATE INDEX job_runs_period ON job_runs (job, period) WHERE period <> '';

-- once_per: resource. A marker outlives the history of runs, so that run_id may point to a run that was purged.
CREATE TABLE resource_markers (
    job      TEXT NOT NULL,
    resource TEXT NOT NULL,
    run_id   INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    PRIMARY KEY (job, resource)
) STRICT, WITHOUT ROWID;

-- A job, or with '' all of them, whose occurrences do not run. The rows stay, so that planning knows later when they were
-- paused. A pause ends at resumed_at or at until_at, whichever comes first.
CREATE TABLE job_pauses (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    job        TEXT NOT NULL,
    reason     TEXT NOT NULL DEFAULT '',
    paused_by  TEXT NOT NULL,
    paused_at  INTEGER NOT NULL,
    until_at   INTEGER,
    resumed_by TEXT NOT NULL DEFAULT '',
    resumed_at INTEGER
) STRICT;
CREATE UNIQUE INDEX job_pauses_open ON job_pauses (job) WHERE resumed_at IS NULL;
