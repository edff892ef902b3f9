package doctor

import (
	"cmp"
	"context"
	"errors"
	"os"
	"time"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/locking"
	"github.com/cronlatch/cronlatch/migrations"
	"github.com/cronlatch/cronlatch/scheduler"
)

// Patient is what is looked at.
type Patient struct {
	Configuration Configuration
	Target        database.Target
	TargetErr     error // there is no target
	Patience      time.Duration
	// Probe asks the listener of the configuration; nil: there is nothing to ask.
	Probe func(ctx context.Context) (address string, exposed error, remedy string, answering bool, taken error)
	// Supervisor tries to start what runs commands, and says what is weaker here.
	Supervisor func() (weaknesses []string, err error)
	Root       bool
}

// Result is an examination.
type Result struct {
	Findings    []Finding
	Unreachable bool // the database could not be asked
}

// Examine looks at everything.
func Examine(ctx context.Context, p *Patient) Result {
	r := Result{Findings: []Finding{judgeConfiguration(&p.Configuration)}}
	inDatabase, err := p.database(ctx)
	r.Findings = append(r.Findings, inDatabase...)
	r.Unreachable = err != nil
	r.Findings = append(r.Findings, p.host(ctx)...)
	return r
}

func (p *Patient) ttl() time.Duration {
	if c := p.Configuration.Config; c != nil {
		return c.Lock.TTL
	}
	return locking.DefaultTTL
}

// host is what needs no database.
func (p *Patient) host(ctx context.Context) (all []Finding) {
	if p.Probe != nil {
		var f listenerFacts
		f.Address, f.Exposed, f.Remedy, f.Answering, f.Taken = p.Probe(ctx)
		all = append(all, judgeListener(&f))
	}
	c := p.Configuration.Config
	if c != nil && !c.Auth.None && !c.Auth.HasAdmin() {
		path := c.File(c.Auth.TokenFile)
		info, err := os.Lstat(path)
		mode := os.FileMode(0)
		if err == nil {
			mode = info.Mode()
		}
		all = append(all, judgeToken(path, mode, err))
	}
	all = append(all, judgeSupervisor(p.Supervisor()))
	var known []*jobs.Job
	capacity := 0
	if c != nil {
		known, capacity = c.Jobs, c.Capacity
	}
	if limit, err := openFiles(); err != nil {
		all = append(all, unknown("open files", err))
	} else {
		all = append(all, judgeFiles(limit, capacity))
	}
	return append(all, judgeRoot(p.Root, known))
}

// database is what the database says; the error is that of not reaching it.
func (p *Patient) database(ctx context.Context) (all []Finding, err error) {
	if p.TargetErr != nil { // nothing was asked: that is a mistake, not an outage
		return []Finding{bad("database", "--database-url, DATABASE_URL or database.url names it", "%v", p.TargetErr)}, nil
	}
	file := p.file()
	if file != nil {
		all = judgeFile(file)
		if all[0].Level == Fail {
			return append(all, bad("database", "see the line about the file", "%s cannot be opened", p.Target)), errUnusable
		}
		if file.untouched() {
			return append(all, judgeUnopened(file)), nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, p.Patience)
	defer cancel()
	db, err := database.Open(p.Target, database.Options{AppName: "cronlatch doctor", MaxConns: 1, RenewConns: 1, StatementTimeout: p.Patience})
	if err != nil {
		return append(all, bad("database", "correct the URL", "%v", err)), nil
	}
	defer func() { _ = db.Close() }()
	if err := db.Main.PingContext(ctx); err != nil {
		remedy := cmp.Or(database.Remedy(err), "is it running? --database-url or DATABASE_URL names another")
		return append(all, bad("database", remedy, "%s cannot be reached: %v", p.Target, err)), err
	}
	return append(all, p.inside(ctx, db, file)...), nil
}

// errUnusable is a file that needs not be opened to know.
var errUnusable = errors.New("the file cannot be used")

// inside is what the database says of itself.
func (p *Patient) inside(ctx context.Context, db *database.DB, file *fileFacts) []Finding {
	all, mayMigrate := p.server(ctx, db, file)
	clock, err := sampleClock(ctx, db.Main, db.Kind)
	if err != nil {
		return append(all, unknown("clock", err))
	}
	all = append(all, judgeClock(clock, p.ttl()))
	schema := migrations.Check(ctx, db.Main)
	list, listErr := migrations.Status(ctx, db.Main)
	empty := listErr == nil && len(list) > 0 && list[0].AppliedAt == nil
	all = append(all, judgeSchema(schema, empty, mayMigrate))
	if schema != nil {
		return all // the rest would ask for tables that are not there
	}
	return append(all, p.fleet(ctx, db)...)
}

// server is what is different from one kind of database to the other.
func (p *Patient) server(ctx context.Context, db *database.DB, file *fileFacts) (all []Finding, mayMigrate bool) {
	if file != nil {
		if err := askSQLite(ctx, db.Main, file); err != nil {
			return []Finding{unknown("database", err)}, true
		}
		return []Finding{good("database", "SQLite %s answers", file.Version), judgeJournal(file)}, true
	}
	facts, err := askPostgres(ctx, db.Main)
	if err != nil {
		return []Finding{unknown("database", err)}, true
	}
	missing, err := lackingPostgres(ctx, db.Main)
	role := judgeRole(facts, missing)
	if err != nil {
		role = unknown("role", err)
	}
	return []Finding{
		judgeServer(facts), judgeTLS(p.Target.Hosts(), facts.Encrypted, db.Pooled()), role, judgePooler(db.Pooled()),
		judgeZones(jobs.ZoneVersion, facts.TimeZone), judgeDurability(facts),
	}, facts.MayCreate
}

func (p *Patient) fleet(ctx context.Context, db *database.DB) []Finding {
	const heardOf = 24 * time.Hour
	rows, err := scheduler.Replicas(ctx, db.Main, heardOf)
	if err != nil {
		return []Finding{unknown("replicas", err)}
	}
	replicas := replicasOf(rows)
	all := []Finding{judgeReplicas(replicas, p.ttl())}
	store, err := locking.NewStore(db.Main)
	if err != nil {
		return append(all, unknown("locks", err))
	}
	const most = 1000
	expired, err := store.List(ctx, locking.ListFilter{State: locking.StateExpired, Limit: most})
	if err != nil {
		return append(all, unknown("locks", err))
	}
	alive := false
	for _, r := range replicas {
		alive = alive || r.Silence <= p.ttl()
	}
	now := time.Time{}
	if len(expired) > 0 {
		now = expired[0].Now
	}
	return append(all, judgeLocks(expired, now, p.ttl(), alive))
}
