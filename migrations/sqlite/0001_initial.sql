-- The data model of cronlatch on SQLite 3.42 or newer; times are integer milliseconds since 1970 in UTC.
-- docs/decisions/0004-data-model.md says why it looks like this.

-- One row: the newest token ever given, for every resource together (SQLite has no sequences).
CREATE TABLE fencing_tokens (
    id   INTEGER PRIMARY KEY CHECK (id = 1),
    last INTEGER NOT NULL CHECK (last BETWEEN 0 AND 9007199254740991)
) STRICT;
INSERT INTO fencing_tokens (id, last) VALUES (1, 0);

CREATE TABLE distributed_locks (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    resource      TEXT NOT NULL UNIQUE CHECK (octet_length(resource) BETWEEN 1 AND 255),
    owner         TEXT NOT NULL CHECK (owner <> ''),
    fencing_token INTEGER NOT NULL CHECK (fencing_token BETWEEN 1 AND 9007199254740991),
    acquired_at   INTEGER NOT NULL,
    renewed_at    INTEGER NOT NULL,
    expires_at    INTEGER NOT NULL,
    released_at   INTEGER,
    metadata      TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(metadata))
) STRICT;

CREATE TABLE job_runs (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    job             TEXT NOT NULL,
    occurrence      TEXT NOT NULL,
    attempt         INTEGER NOT NULL CHECK (attempt >= 1),
    trigger         TEXT NOT NULL CHECK (trigger IN ('schedule', 'catch_up', 'manual', 'retry', 'recovery', 'backfill')),
    requested_by    TEXT NOT NULL DEFAULT '',
    scheduled_at    INTEGER NOT NULL,
    due_at          INTEGER NOT NULL,
    start_by        INTEGER,
    resource        TEXT NOT NULL,
    overlap         TEXT NOT NULL CHECK (overlap IN ('skip', 'queue', 'wait')),
    on_lost         TEXT NOT NULL CHECK (on_lost IN ('fail', 'retry', 'hold')),
    max_attempts    INTEGER NOT NULL CHECK (max_attempts >= 1),
    state           TEXT NOT NULL CHECK (state IN ('pending', 'running', 'held', 'finished')),
    outcome         TEXT CHECK (outcome IN ('succeeded', 'failed', 'timed_out', 'cancelled', 'skipped', 'missed', 'lost')),
    reason          TEXT NOT NULL DEFAULT '',
    detail          TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(detail)),
    replica         TEXT NOT NULL DEFAULT '',
    owner           TEXT NOT NULL DEFAULT '',
    fencing_token   INTEGER,
    created_at      INTEGER NOT NULL,
    started_at      INTEGER,
    finished_at     INTEGER,
    exit_code       INTEGER,
    signal          TEXT NOT NULL DEFAULT '',
    late_outcome    TEXT CHECK (late_outcome IS NULL OR json_valid(late_outcome)),
    UNIQUE (job, occurrence, attempt),
    CHECK ((state = 'finished') = (outcome IS NOT NULL)),
    CHECK ((state = 'finished') = (finished_at IS NOT NULL)),
    CHECK (state <> 'running' OR (fencing_token IS NOT NULL AND started_at IS NOT NULL))
) STRICT;
CREATE INDEX job_runs_pending ON job_runs (due_at, id) WHERE state = 'pending';
CREATE INDEX job_runs_running ON job_runs (id) WHERE state = 'running';
CREATE INDEX job_runs_unfinished ON job_runs (job, scheduled_at, id) WHERE state <> 'finished';
CREATE INDEX job_runs_history ON job_runs (job, scheduled_at DESC, id DESC);

-- The legal transitions; finished is final. The scheduler's statements are guarded by themselves: this is the second line.
CREATE TRIGGER job_runs_transition BEFORE UPDATE OF state ON job_runs
WHEN OLD.state <> NEW.state AND OLD.state || '>' || NEW.state NOT IN
    ('pending>running', 'pending>finished', 'running>finished', 'held>pending', 'held>finished')
BEGIN
    SELECT RAISE(ABORT, 'a run cannot go from this state to that one');
END;

CREATE TABLE run_outputs (
    run_id      INTEGER PRIMARY KEY REFERENCES job_runs (id) ON DELETE CASCADE,
    head        BLOB NOT NULL,
    tail        BLOB NOT NULL,
    total_bytes INTEGER NOT NULL
) STRICT;

CREATE TABLE plan_positions (
    job           TEXT NOT NULL,
    schedule_hash TEXT NOT NULL,
    position      INTEGER NOT NULL,
    PRIMARY KEY (job, schedule_hash)
) STRICT, WITHOUT ROWID;

-- A row is one lifetime: a replica that lost the database for a while comes back as a new row,
-- so that "nobody was alive from A to B" can be said later.
CREATE TABLE replicas (
    id               INTEGER PRIMARY KEY AUTOINCREMENT,
    name             TEXT NOT NULL,
    boot_nonce       TEXT NOT NULL,
    host             TEXT NOT NULL,
    pid              INTEGER NOT NULL,
    version          TEXT NOT NULL,
    definitions_hash TEXT NOT NULL,
    capacity         INTEGER NOT NULL,
    running          INTEGER NOT NULL DEFAULT 0,
    draining         INTEGER NOT NULL DEFAULT 0,
    joined_at        INTEGER NOT NULL,
    seen_at          INTEGER NOT NULL,
    left_at          INTEGER
) STRICT;
CREATE INDEX replicas_joined ON replicas (joined_at);

CREATE TABLE audit_log (
    id            INTEGER PRIMARY KEY AUTOINCREMENT,
    at            INTEGER NOT NULL,
    action        TEXT NOT NULL,
    outcome       TEXT NOT NULL CHECK (outcome IN ('success', 'failure', 'unknown')),
    actor_type    TEXT NOT NULL,
    actor_id      TEXT NOT NULL,
    job           TEXT NOT NULL DEFAULT '',
    run_id        INTEGER,
    resource      TEXT NOT NULL DEFAULT '',
    owner         TEXT NOT NULL DEFAULT '',
    fencing_token INTEGER,
    replica       TEXT NOT NULL DEFAULT '',
    reason        TEXT NOT NULL DEFAULT '',
    detail        TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(detail))
) STRICT;
CREATE INDEX audit_log_at ON audit_log (at);
