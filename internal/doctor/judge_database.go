package doctor

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/migrations"
)

// postgresFacts is what a session says about its server.
type postgresFacts struct {
	Version           string `bun:"version"`
	VersionNumber     int    `bun:"version_number"`
	Encrypted         *bool  `bun:"encrypted"` // nil: not known
	Role              string `bun:"role"`
	Superuser         bool   `bun:"superuser"`
	Schema            string `bun:"schema"`
	MayCreate         bool   `bun:"may_create"`
	TimeZone          string `bun:"time_zone"`
	SynchronousCommit string `bun:"synchronous_commit"`
	SyncStandbys      string `bun:"sync_standbys"`
	Recovering        bool   `bun:"recovering"`
	Fsync             string `bun:"fsync"`
	FullPageWrites    string `bun:"full_page_writes"`
	Standbys          int    `bun:"standbys"`
}

// oldestPostgres is the oldest version that the tests run on.
const oldestPostgres = 140_000

func judgeServer(f *postgresFacts) Finding {
	switch {
	case f.Recovering:
		return bad("database", "name the primary in the URL, or several hosts with target_session_attrs=read-write",
			"PostgreSQL %s is a standby, and takes no writes", f.Version)
	case f.VersionNumber < oldestPostgres:
		return warn("database", "use PostgreSQL 14 or newer", "PostgreSQL %s is older than what is tested", f.Version)
	default:
		return good("database", "PostgreSQL %s answers", f.Version)
	}
}

func judgeTLS(hosts []database.Host, encrypted *bool, pooled bool) Finding {
	const check, remedy = "tls", "add sslmode=verify-full to the URL, and sslrootcert=FILE when the authority is your own"
	for _, h := range hosts {
		if !h.Local && !h.Verified {
			return warn(check, remedy, "sslmode=%s: whoever is on the way to %s can pretend to be the database", h.SSLMode, h.Address)
		}
	}
	switch {
	case pooled:
		return good(check, "sslmode=%s on the way to the pooler; what is behind it cannot be seen from here", modes(hosts))
	case encrypted == nil:
		return warn(check, "ask the administrator of the server", "whether the session is encrypted could not be found out")
	case *encrypted:
		return good(check, "the session is encrypted (sslmode=%s)", modes(hosts))
	default:
		return good(check, "the session is not encrypted, and does not leave this machine")
	}
}

func modes(hosts []database.Host) string {
	var all []string
	for _, h := range hosts {
		all = append(all, h.SSLMode)
	}
	return strings.Join(all, ",")
}

func judgeRole(f *postgresFacts, missing []string) Finding {
	const check, shown = "role", 5
	switch {
	case len(missing) > 0:
		more := ""
		if len(missing) > shown {
			more = fmt.Sprintf(" and %d more", len(missing)-shown)
		}
		return bad(check, fmt.Sprintf("as the tables' owner: GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %s TO %s; "+
			"GRANT USAGE ON ALL SEQUENCES IN SCHEMA %[1]s TO %[2]s", f.Schema, f.Role),
			"%s lacks %s%s", f.Role, strings.Join(missing[:min(shown, len(missing))], ", "), more)
	case f.Schema == "":
		return bad(check, "CREATE SCHEMA, or GRANT USAGE on one that is there; search_path in the URL names it", "%s has no schema to work in", f.Role)
	case f.Superuser:
		return warn(check, "make a role of its own that owns one database: CREATE ROLE cronlatch LOGIN; CREATE DATABASE cronlatch OWNER cronlatch",
			"%s is a superuser, which is more than cronlatch needs", f.Role)
	case !f.MayCreate:
		return warn(check, "run `cronlatch migrate up` as a role that may, before each upgrade",
			"%s may not create tables in %s: it cannot migrate", f.Role, f.Schema)
	default:
		return good(check, "%s has what it needs in %s", f.Role, f.Schema)
	}
}

// judgeSchema: nobody but a role that may create tables (mayMigrate) brings a schema up, a daemon that starts no more than a person.
func judgeSchema(err error, empty, mayMigrate bool) Finding {
	const check, byOwner = "schema", "run `cronlatch migrate up` as a role that may create tables; a daemon cannot start before"
	switch {
	case err == nil:
		return good(check, "it is this version's")
	case empty && !mayMigrate:
		return bad(check, byOwner, "the database is empty, and this role cannot make the schema")
	case empty:
		return warn(check, "nothing: the first command or daemon makes the schema; or run `cronlatch migrate up`", "the database is empty")
	case errors.Is(err, migrations.ErrPending) && !mayMigrate:
		return bad(check, byOwner, "%v", err)
	case errors.Is(err, migrations.ErrPending):
		return warn(check, "run `cronlatch migrate up`, or start `cronlatch serve`, which does it", "%v", err)
	case errors.Is(err, migrations.ErrNewer):
		return bad(check, "use the version of cronlatch that migrated it, or a newer one", "%v", err)
	case errors.Is(err, migrations.ErrChanged):
		return bad(check, "find out who changed the schema; restore a backup, or start with an empty database", "%v", err)
	default:
		return bad(check, "see the line about the role", "%v", err)
	}
}

func judgePooler(pooled bool) Finding {
	if pooled {
		return good("pooler", "there is one; each transaction brings its settings along, so that transaction mode is fine")
	}
	return good("pooler", "none: the connection leads to the server itself")
}

// clockFacts are the database's clock as seen from here.
type clockFacts struct {
	Offset time.Duration // positive: the database is ahead
	Jitter time.Duration // how far the samples are apart
	Trip   time.Duration // the shortest time for a question and its answer
}

const (
	largeOffset = 2 * time.Second
	largeTrip   = 500 * time.Millisecond
)

func judgeClock(c clockFacts, ttl time.Duration) Finding {
	const check = "clock"
	facts := fmt.Sprintf("the database's clock %s; %s for an answer, %s of jitter",
		aheadOrBehind(c.Offset), c.Trip.Round(10*time.Microsecond), c.Jitter.Round(10*time.Microsecond))
	switch {
	case c.Trip > ttl/10:
		return bad(check, fmt.Sprintf("bring the database nearer, or raise lock.ttl (%s)", ttl), "%s: renewals may come too late", facts)
	case c.Offset.Abs() > largeOffset:
		return warn(check, "let both hosts follow NTP; runs start by the database's clock, and this host's logs show another time", "%s", facts)
	case c.Trip > largeTrip:
		return warn(check, "bring the database nearer", "%s", facts)
	default:
		return good(check, "%s", facts)
	}
}

func aheadOrBehind(d time.Duration) string {
	const step = 100 * time.Microsecond
	switch text := d.Abs().Round(step).String(); {
	case d.Abs().Round(step) == 0:
		return "agrees with this host's"
	case d < 0:
		return "is " + text + " behind this host's"
	default:
		return "is " + text + " ahead of this host's"
	}
}

func judgeZones(embedded, database string) Finding {
	return good("zones", "schedules use the embedded time zones %s on every replica; the database's TimeZone (%s) does not matter", embedded, database)
}

func judgeDurability(f *postgresFacts) Finding {
	const check = "durability"
	switch {
	case f.Fsync == "off" || f.FullPageWrites == "off":
		return warn(check, "set fsync and full_page_writes to on, unless the data may be lost", "fsync is %s and full_page_writes is %s: a crash may lose locks", f.Fsync, f.FullPageWrites)
	case f.SynchronousCommit == "off":
		return bad(check, "ALTER DATABASE or ALTER ROLE ... SET synchronous_commit = on",
			"synchronous_commit is off: after a crash a fencing token can be given out twice")
	case f.Standbys > 0 && f.SyncStandbys == "":
		return warn(check, "set synchronous_standby_names, or never fail over to a standby that lags",
			"%d asynchronous standby: after a failover to it, tokens that were given last may be given again", f.Standbys)
	case f.SyncStandbys != "" && f.SynchronousCommit == "local":
		return warn(check, "set synchronous_commit to on", "synchronous_commit is local, so that commits do not wait for the synchronous standby")
	default:
		return good(check, "synchronous_commit is %s", f.SynchronousCommit)
	}
}
