-- The lock service: whose lock it is beyond the owner's text, and the tokens of its API.

-- The principal is who authenticated when the lock was taken; '' for the daemon itself and for whoever has the database.
-- Replicas of the version before write and read locks without it.
ALTER TABLE distributed_locks ADD COLUMN principal TEXT NOT NULL DEFAULT '';

-- Tokens that are not in a configuration file, and the revocation of those that are. Only a token's SHA-256 is kept.
CREATE TABLE api_tokens (
    id         TEXT PRIMARY KEY CHECK (length(id) BETWEEN 1 AND 32 AND id NOT GLOB '*[^a-z0-9-]*'),
    hash       TEXT NOT NULL CHECK (hash = '' OR (length(hash) = 64 AND hash NOT GLOB '*[^0-9a-f]*')), -- '' when the row only revokes
    role       TEXT NOT NULL CHECK (role IN ('viewer', 'locker', 'operator', 'admin')),
    prefix     TEXT NOT NULL DEFAULT '',
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER
) STRICT, WITHOUT ROWID;
