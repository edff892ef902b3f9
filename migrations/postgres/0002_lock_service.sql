-- The lock service: whose lock it is beyond the owner's text, and the tokens of its API.

-- The principal is who authenticated when the lock was taken; '' for the daemon itself and for whoever has the database.
-- Replicas of the version before write and read locks without it.
ALTER TABLE distributed_locks ADD COLUMN principal text COLLATE "C" NOT NULL DEFAULT '';

-- Metadata is shown as it was given: jsonb would sort its keys and rewrite its numbers.
ALTER TABLE distributed_locks ALTER COLUMN metadata DROP DEFAULT;
ALTER TABLE distributed_locks ALTER COLUMN metadata TYPE json USING metadata::json;
ALTER TABLE distributed_locks ALTER COLUMN metadata SET DEFAULT '{}';

-- Tokens that are not in a configuration file, and the revocation of those that are. Only a token's SHA-256 is kept.
CREATE TABLE api_tokens (
    id         text COLLATE "C" PRIMARY KEY CHECK (id ~ '^[a-z0-9-]{1,32}$'),
    hash       text COLLATE "C" NOT NULL CHECK (hash ~ '^([0-9a-f]{64})?$'), -- '' when the row only revokes
    role       text NOT NULL CHECK (role IN ('viewer', 'locker', 'operator', 'admin')),
    prefix     text COLLATE "C" NOT NULL DEFAULT '',
    created_at timestamptz NOT NULL,
    expires_at timestamptz,
    revoked_at timestamptz
);

-- Who waits for a lock until when: a release notifies only if somebody does. A hint, and worth no WAL.
CREATE UNLOGGED TABLE lock_waiters (
    resource text COLLATE "C" PRIMARY KEY,
    until    timestamptz NOT NULL
) WITH (fillfactor = 50);
