package configs

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// daemonDraft is a file as it is read, before its jobs are built.
type daemonDraft struct {
	Config

	defaults  *node
	jobs      *node
	calendars *node
	limits    map[string]int

	include      []string
	includeNodes []*node
	databases    map[string]Database // of sql jobs
}

// daemonFields is the table of the keys at the top of the file.
func daemonFields() []field[daemonDraft] {
	return slices.Concat(stateFields(), listenerFields(), limitFields(), labelFields(), targetFields(), channelsFields(), workFields(), keptFields(), includeFields())
}

func stateFields() []field[daemonDraft] {
	return []field[daemonDraft]{
		{
			key: "version", initial: "1", doc: "The version of this file's format. There is one so far.",
			bind: func(d *daemonDraft) sink { return formatVersion{&d.Version} },
		},
		{
			key: "database", doc: "Where state is kept: PostgreSQL for several hosts, an SQLite file for one.",
			bind: func(d *daemonDraft) sink {
				return group[Database]{databaseFields(), &d.Database, `{url: "sqlite:cronlatch.db"}`}
			},
		},
	}
}

func workFields() []field[daemonDraft] {
	return []field[daemonDraft]{
		{
			key: "lock", doc: "How long locks live.",
			bind: func(d *daemonDraft) sink { return group[Lock]{lockFields(), &d.Lock, "{ttl: 30s}"} },
		},
		{
			key: "capacity", initial: "16", env: "CRONLATCH_CAPACITY", doc: "How many runs this replica has at a time.",
			bind: func(d *daemonDraft) sink { return number{&d.Capacity, 1, 10_000} },
		},
		{
			key: "drain_timeout", initial: "30s", env: "CRONLATCH_DRAIN_TIMEOUT", doc: "How long running jobs may go on after SIGTERM.",
			bind: func(d *daemonDraft) sink { return duration{&d.DrainTimeout, 0, day} },
		},
		{
			key: "log", doc: "The daemon's own log; the audit is not affected.",
			bind: func(d *daemonDraft) sink { return group[Log]{logFields(), &d.Log, "{level: info}"} },
		},
		{
			key: "defaults", doc: "Values for every job that does not set the key itself; env is added to the job's.",
			bind: func(d *daemonDraft) sink { return deferred{&d.defaults, `{timezone: "Europe/Berlin"}`, defaultsSchema} },
		},
		{
			key: "calendars", doc: "Named sets of dates that jobs exclude or include.",
			bind: func(d *daemonDraft) sink {
				return deferred{&d.calendars, "{de: {weekdays: [sat, sun]}}", calendarsSchema}
			},
		},
		{
			key: "jobs", required: true, unless: "include", doc: "The jobs by name; {} makes the daemon a lock service.",
			bind: func(d *daemonDraft) sink { return deferred{&d.jobs, `{backup: {run: "./backup.sh"}}`, jobsSchema} },
		},
	}
}

func databaseFields() []field[Database] {
	return []field[Database]{{
		key: "url", doc: "postgres://user@host/name or sqlite:path; DATABASE_URL goes before it.",
		bind: func(d *Database) sink { return text{into: &d.URL, check: checkDatabaseURL, like: databaseURLPattern} },
	}}
}

func lockFields() []field[Lock] {
	return []field[Lock]{
		{
			key: "ttl", initial: "30s", env: "CRONLATCH_LOCK_TTL", doc: "How long a lock lives without renewal; a dead replica's jobs wait that long.",
			bind: func(l *Lock) sink { return duration{&l.TTL, time.Second, day} },
		},
		{
			key: "takeover_grace", initial: "0s", env: "CRONLATCH_LOCK_TAKEOVER_GRACE", doc: "How long an expired lock is left alone before another replica takes it.",
			bind: func(l *Lock) sink { return duration{&l.TakeoverGrace, 0, day} },
		},
		{
			key: "keep_for", initial: "1w", env: "CRONLATCH_LOCK_KEEP_FOR", doc: "How long the row of a lock is kept after its release or expiry; tokens go on growing without it.",
			bind: func(l *Lock) sink { return duration{&l.KeepFor, time.Hour, 10 * 365 * day} },
		},
	}
}

func logFields() []field[Log] {
	return []field[Log]{
		{
			key: "level", initial: "info", env: "CRONLATCH_LOG_LEVEL", doc: "The least severe level that is logged.",
			bind: func(l *Log) sink {
				return choice[string]{into: &l.Level, words: []string{"debug", "info", "warn", "error"}}
			},
		},
		{
			key: "format", initial: string(LogAuto), env: "CRONLATCH_LOG_FORMAT", doc: "auto is console on a terminal and json otherwise.",
			bind: func(l *Log) sink {
				return choice[LogFormat]{into: &l.Format, words: []LogFormat{LogAuto, LogJSON, LogConsole}}
			},
		},
	}
}

// daemonHint says more about an unknown key at the top of the file.
func daemonHint(key, _ string) string {
	for _, f := range jobFields() {
		switch {
		case f.key != key:
		case f.shared:
			return fmt.Sprintf("unknown key %q; it belongs in a job, or in defaults for all of them", key)
		default:
			return fmt.Sprintf("unknown key %q; it belongs in a job, under jobs", key)
		}
	}
	return ""
}

// formatVersion is a sink for the version of the file.
type formatVersion struct{ into *int }

func (s formatVersion) read(r *reader, n *node, name string) {
	if n.text != "1" || n.kind != kindInteger && !n.loose {
		r.refuse(n, codeVersion, "%s must be the number 1, the only one this program reads, not %s", name, n.describe())
		return
	}
	*s.into = 1
}

// deferred is a sink for a map that is read when everything else is known.
type deferred struct {
	into    **node
	shape   string
	content func() *schema
}

func (deferred) empty() string { return "{}" }

func (s deferred) read(r *reader, n *node, name string) {
	if n.kind != kindMap {
		r.refuse(n, codeType, "%s must be a map such as %s, not %s", name, s.shape, n.describe())
		return
	}
	*s.into = n
}

const databaseURLPattern = "^(postgres://|postgresql://|sqlite:)"

var errDatabaseURL = errors.New(`must start with "postgres://", "postgresql://" or "sqlite:"`)

// checkDatabaseURL looks at the scheme only: internal/database reads the rest, together with the environment. The URL
// is not in the message because it may hold a password.
func checkDatabaseURL(url string) error {
	for _, scheme := range []string{"postgres://", "postgresql://", "sqlite:"} {
		if strings.HasPrefix(url, scheme) {
			return nil
		}
	}
	return errDatabaseURL
}
