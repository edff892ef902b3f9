package doctor

import (
	"context"
	"fmt"

	"github.com/uptrace/bun"
)

const postgresAsk = `
SELECT current_setting('server_version') AS version, current_setting('server_version_num')::int AS version_number,
	(SELECT s.ssl FROM pg_stat_ssl AS s WHERE s.pid = pg_backend_pid()) AS encrypted,
	current_user::text AS role, (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) AS superuser,
	coalesce(current_schema()::text, '') AS schema,
	coalesce(has_schema_privilege(current_schema(), 'CREATE'), false) AS may_create,
	current_setting('TimeZone') AS time_zone, current_setting('synchronous_commit') AS synchronous_commit,
	current_setting('synchronous_standby_names') AS sync_standbys, pg_is_in_recovery() AS recovering,
	current_setting('fsync') AS fsync, current_setting('full_page_writes') AS full_page_writes,
	(SELECT count(*) FROM pg_stat_replication)::int AS standbys`

const postgresClock = `SELECT clock_timestamp() AS now`

// postgresLacking lists what the role may not do with the tables and sequences of the schema that are ours.
const postgresLacking = `
SELECT p.privilege || ' on ' || c.relname AS lacking
FROM pg_class AS c CROSS JOIN (VALUES ('SELECT'), ('INSERT'), ('UPDATE'), ('DELETE')) AS p (privilege)
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r' AND c.relname IN (
	SELECT value FROM jsonb_array_elements_text(?::jsonb) AS value)
	AND NOT has_table_privilege(c.oid, p.privilege)
ORDER BY 1 LIMIT 5`

func askPostgres(ctx context.Context, db bun.IDB) (*postgresFacts, error) {
	f := &postgresFacts{}
	if err := db.NewRaw(postgresAsk).Scan(ctx, f); err != nil {
		return nil, fmt.Errorf("asking the server about itself: %w", err)
	}
	return f, nil
}

// tables are those that a daemon writes.
const tables = `["distributed_locks", "job_runs", "run_outputs", "run_output_chunks", "plan_positions", "job_pauses",
	"resource_markers", "replicas", "outbox", "audit_log", "api_tokens"]`

func lackingPostgres(ctx context.Context, db bun.IDB) (missing []string, err error) {
	if err := db.NewRaw(postgresLacking, tables).Scan(ctx, &missing); err != nil {
		return nil, fmt.Errorf("asking for privileges: %w", err)
	}
	return missing, nil
}
