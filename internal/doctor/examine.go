package doctor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
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
	const remedy = "is it running? --database-url or DATABASE_URL names another"
	if p.TargetErr != nil {
		return []Finding{bad("database", "--database-url, DATABASE_URL or database.url names it", "%v", p.TargetErr)}, p.TargetErr
	}
	file := p.file()
	if file != nil {
		all = judgeFile(file)
		if file.Err != nil { // opening it would make it
			if os.IsNotExist(file.Err) && file.Network == "" {
				return append(all, good("database", "SQLite makes its file when it is needed")), nil
			}
			return append(all, bad("database", remedy, "%s cannot be opened", p.Target)), file.Err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, p.Patience)
	defer cancel()
	db, err := database.Open(p.Target, database.Options{AppName: "cronlatch doctor", MaxConns: 1, RenewConns: 1, StatementTimeout: p.Patience})
	if err != nil {
		return append(all, bad("database", "correct the URL", "%v", err)), err
	}
	defer func() { _ = db.Close() }()
	if err := db.Main.PingContext(ctx); err != nil {
		return append(all, bad("database", remedy, "%s cannot be reached: %v", p.Target, err)), err
	}
	all = append(all, p.server(ctx, db, file)...)
	clock, err := sampleClock(ctx, db.Main, db.Kind)
	if err != nil {
		return append(all, unknown("clock", err)), nil
	}
	all = append(all, judgeClock(clock, p.ttl()))
	schema := migrations.Check(ctx, db.Main)
	list, listErr := migrations.Status(ctx, db.Main)
	empty := listErr == nil && len(list) > 0 && list[0].AppliedAt == nil
	all = append(all, judgeSchema(schema, empty))
	if schema != nil {
		return all, nil // the rest would ask for tables that are not there
	}
	return append(all, p.fleet(ctx, db)...), nil
}

// server is what is different from one kind of database to the other.
func (p *Patient) server(ctx context.Context, db *database.DB, file *fileFacts) []Finding {
	if file != nil {
		if err := askSQLite(ctx, db.Main, file); err != nil {
			return []Finding{unknown("database", err)}
		}
		return []Finding{good("database", "SQLite %s answers", file.Version), judgeJournal(file)}
	}
	facts, err := askPostgres(ctx, db.Main)
	if err != nil {
		return []Finding{unknown("database", err)}
	}
	missing, err := lackingPostgres(ctx, db.Main)
	role := judgeRole(facts, missing)
	if err != nil {
		role = unknown("role", err)
	}
	return []Finding{
		judgeServer(facts), judgeTLS(p.Target.Hosts(), facts.Encrypted, db.Pooled()), role, judgePooler(db.Pooled()),
		judgeZones(jobs.ZoneVersion, facts.TimeZone), judgeDurability(facts),
	}
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

// file is nil on PostgreSQL.
func (p *Patient) file() *fileFacts {
	if p.Target.Kind != database.SQLite {
		return nil
	}
	f := &fileFacts{Path: p.Target.Path}
	dir := filepath.Dir(f.Path)
	f.Network, f.Err = database.NetworkFileSystem(dir)
	f.Overlay = onOverlay(dir)
	f.FreeBytes, f.FreeErr = freeBytes(dir)
	if f.Err != nil {
		f.Err = fmt.Errorf("looking at the folder of %s: %w", f.Path, f.Err)
		return f
	}
	info, err := os.Stat(f.Path)
	if err != nil {
		f.Err = err
		return f
	}
	f.Mode = info.Mode()
	return f
}
