package doctor

import (
	"context"
	"fmt"

	"github.com/uptrace/bun"
)

const postgresAsk = `
SELECT current_setting('server_version') AS version, current_setting('server_version_num')::int AS version_number,
	(SELECT s.ssl FROM pg_stat_ssl AS s WHERE s.pid = pg_backend_pid()) AS encrypted,
	quote_ident(current_user) AS role, (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) AS superuser,
	coalesce(quote_ident(current_schema()), '') AS schema,
	coalesce(has_schema_privilege(current_schema(), 'CREATE'), false) AS may_create,
	current_setting('TimeZone') AS time_zone, current_setting('synchronous_commit') AS synchronous_commit,
	current_setting('synchronous_standby_names') AS sync_standbys, pg_is_in_recovery() AS recovering,
	current_setting('fsync') AS fsync, current_setting('full_page_writes') AS full_page_writes,
	(SELECT count(*) FROM pg_stat_replication)::int AS standbys`

const postgresClock = `SELECT clock_timestamp() AS now`

// postgresLacking lists what the role may not do with what is ours in the schema: all with the tables, except that nothing changes
// audit_log or writes schema_migrations, and the sequence of the fencing tokens. Those of identity columns need no privilege.
const postgresLacking = `
SELECT p.privilege || ' on ' || c.relname AS lacking
FROM pg_class AS c CROSS JOIN (VALUES ('SELECT'), ('INSERT'), ('UPDATE'), ('DELETE')) AS p (privilege)
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')
	AND (c.relname IN (SELECT value FROM jsonb_array_elements_text(?::jsonb) AS value)
		OR (c.relname = 'audit_log' AND p.privilege IN ('SELECT', 'INSERT'))
		OR (c.relname = 'schema_migrations' AND p.privilege = 'SELECT'))
	AND NOT has_table_privilege(c.oid, p.privilege)
UNION ALL
SELECT 'USAGE on ' || c.relname FROM pg_class AS c
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'S' AND c.relname = 'fencing_tokens'
	AND NOT has_sequence_privilege(c.oid, 'USAGE')
ORDER BY 1`

func askPostgres(ctx context.Context, db bun.IDB) (*postgresFacts, error) {
	f := &postgresFacts{}
	if err := db.NewRaw(postgresAsk).Scan(ctx, f); err != nil {
		return nil, fmt.Errorf("asking the server about itself: %w", err)
	}
	return f, nil
}

// tables are those that a daemon reads and writes.
const tables = `["api_tokens", "distributed_locks", "job_pauses", "job_runs", "job_troubles", "lock_waiters", "outbox", "plan_positions", "replicas",
	"resource_markers", "run_output_chunks", "run_outputs", "run_waits", "tag_counters"]`

func lackingPostgres(ctx context.Context, db bun.IDB) (missing []string, err error) {
	if err := db.NewRaw(postgresLacking, tables).Scan(ctx, &missing); err != nil {
		return nil, fmt.Errorf("asking for privileges: %w", err)
	}
	return missing, nil
}
