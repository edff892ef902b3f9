-- Operating it: parameters, notifications, live output, draining, retention. Every column has a default under which a row
-- means what it meant before.

-- What a manual run or a backfill was given: {name: text}.
ALTER TABLE job_runs ADD COLUMN params TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(params));
-- Somebody wants to hear how the run ends, and nobody has looked yet; cleared when somebody has.
ALTER TABLE job_runs ADD COLUMN notify INTEGER NOT NULL DEFAULT 0 CHECK (notify IN (0, 1));

CREATE INDEX job_runs_notify ON job_runs (id) WHERE notify AND state = 'finished';
-- The list of all jobs' runs, page by page.
CREATE INDEX job_runs_recent ON job_runs (scheduled_at DESC, id DESC);
-- A job's last success, however many failures came after it.
CREATE INDEX job_runs_succeeded ON job_runs (job, scheduled_at DESC, id DESC) WHERE outcome = 'succeeded';

-- Messages to be sent, each once for the fleet: the key says what about. Whoever sends one holds it until claimed_until.
CREATE TABLE outbox (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    key           TEXT NOT NULL UNIQUE,
    channel       TEXT NOT NULL,
    event         TEXT NOT NULL,
    job           TEXT NOT NULL DEFAULT '',
    run_id        INTEGER,
    payload       TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(payload)),
    state         TEXT NOT NULL DEFAULT 'pending' CHECK (state IN ('pending', 'sent', 'given_up')),
    attempts      INTEGER NOT NULL DEFAULT 0,
    created_at    INTEGER NOT NULL,
    due_at        INTEGER NOT NULL,
    claimed_by    TEXT NOT NULL DEFAULT '',
    claimed_until INTEGER,
    done_at       INTEGER,
    last_error    TEXT NOT NULL DEFAULT ''
) STRICT;
CREATE INDEX outbox_pending ON outbox (due_at, id) WHERE state = 'pending';
-- Which channels have to be left alone for a moment.
CREATE INDEX outbox_claimed ON outbox (claimed_until) WHERE claimed_until IS NOT NULL;

-- Jobs of which somebody was told bad news; the next success is a recovery, and ends it.
CREATE TABLE job_troubles (
    job    TEXT PRIMARY KEY,
    event  TEXT NOT NULL,
    run_id INTEGER,
    since  INTEGER NOT NULL
) STRICT;

-- What a running run has printed so far, as its replica has handed it in; run_outputs takes its place at the end.
CREATE TABLE run_output_chunks (
    run_id  INTEGER NOT NULL REFERENCES job_runs (id) ON DELETE CASCADE,
    at_byte INTEGER NOT NULL,
    data    BLOB NOT NULL,
    PRIMARY KEY (run_id, at_byte)
) STRICT, WITHOUT ROWID;

-- Somebody wants the replica to take no more runs. It is for one process: another one of the same name begins without it.
ALTER TABLE replicas ADD COLUMN drain_asked_at INTEGER;
ALTER TABLE replicas ADD COLUMN drain_asked_by TEXT NOT NULL DEFAULT '';
ALTER TABLE replicas ADD COLUMN drain_reason TEXT NOT NULL DEFAULT '';
-- Each replica asks for its own at every look; next to nobody has one.
CREATE INDEX replicas_drain ON replicas (boot_nonce) WHERE drain_asked_at IS NOT NULL;

-- The replica that made the row; empty where a person did, and of rows from before.
ALTER TABLE job_runs ADD COLUMN planned_by TEXT NOT NULL DEFAULT '';
-- How often the lock was renewed while the run held it, and the least time that was left when the answer came; written with
-- the outcome, and null where nobody who held the lock wrote one.
ALTER TABLE job_runs ADD COLUMN renewals INTEGER;
ALTER TABLE job_runs ADD COLUMN least_left_ms INTEGER;

-- What a run that was due has waited for: a row for each cause and each holder, by the first replica that saw it.
CREATE TABLE run_waits (
    run_id  INTEGER NOT NULL REFERENCES job_runs (id) ON DELETE CASCADE,
    cause   TEXT NOT NULL, -- a reason code
    holder  TEXT NOT NULL, -- the token of a lock, the tag of a limit, the id of a run; else empty
    seen_at INTEGER NOT NULL,
    seen_by TEXT NOT NULL,
    detail  TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(detail)),
    PRIMARY KEY (run_id, cause, holder)
) STRICT, WITHOUT ROWID;
