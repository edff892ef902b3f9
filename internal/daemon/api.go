package daemon

import (
	"context"
	"errors"
	"net/http"

	"github.com/cronlatch/cronlatch/configs"
	"github.com/cronlatch/cronlatch/internal/auth"
	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/internal/httpapi"
	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/locking"
	"github.com/cronlatch/cronlatch/scheduler"
)

// handler is the HTTP API on this database.
func (d *Daemon) handler(db *database.DB) (http.Handler, error) {
	store, err := locking.NewStore(db.Main)
	if err != nil {
		return nil, err
	}
	c := d.o.Config
	o := httpapi.Options{
		Ready: d.ready(db), Logger: d.o.Log, Audit: d.o.Audit,
		Locks:   d.metrics.Store(&sameFile{Store: store, check: db.CheckFile}),
		Replica: d.o.Replica, Grace: c.Lock.TakeoverGrace, AllowedHosts: c.AllowedHosts, Version: d.o.Version,
	}
	o.Metrics = d.metrics.Handler()
	o.TestChannel = d.testChannel
	o.Fleet = &httpapi.Fleet{
		DB: db.Main, Check: db.CheckFile, Jobs: d.known, TTL: c.Lock.TTL, Wake: d.wake, History: d.history, Observe: d.observers(),
	}
	if d.o.Reload != nil {
		o.Reload = d.apiReload
	}
	if !c.Auth.None { // a nil Auth lets everybody in
		table, err := auth.OpenStore(db.Main)
		if err != nil {
			return nil, err
		}
		o.Auth = auth.NewTokens(entries(c.Auth), table)
	}
	return httpapi.New(o), nil
}

// entries are the tokens of the configuration.
func entries(c configs.Auth) []auth.Entry {
	list := make([]auth.Entry, len(c.Tokens))
	for i, t := range c.Tokens {
		list[i] = auth.Entry{ID: t.ID, Hash: t.SHA256, Role: auth.Role(t.Role), Prefix: t.Prefix, ExpiresAt: t.ExpiresAt}
	}
	return list
}

// Login is how the first person gets in.
type Login struct {
	auth.AdminToken

	Path string // of the token file
	Err  error  // no token could be made: the file cannot be written or read. The daemon runs, and lets in whoever has another token
}

// login makes the admin token, unless somebody can log in without it. A file that cannot be written is not a reason to run no
// jobs: a container may have a read-only file system. An error is the database's.
func (d *Daemon) login(ctx context.Context, db *database.DB) error {
	c := d.o.Config
	if c.Auth.None || c.Auth.HasAdmin() {
		return nil
	}
	store, err := auth.OpenStore(db.Main)
	if err != nil {
		return err
	}
	l := Login{Path: c.File(c.Auth.TokenFile)}
	if l.AdminToken, err = auth.EnsureAdmin(ctx, store, l.Path, d.o.Replica); err != nil {
		if !errors.Is(err, auth.ErrFile) {
			return err
		}
		l.Err = err
	}
	if d.o.Login != nil {
		d.o.Login(l)
	}
	return nil
}

func (d *Daemon) purger(store locking.Store, db *database.DB) (*purger, error) {
	history, err := scheduler.OpenRetention(db.Main)
	if err != nil {
		return nil, err
	}
	keeping := func() *scheduler.Keeping { return &scheduler.Keeping{Jobs: d.known(), Default: d.history()} }
	return &purger{
		store: store, keepFor: d.o.Config.Lock.KeepFor, log: d.o.Log,
		history: &historian{store: history, keeping: keeping, log: d.o.Log},
	}, nil
}

// known are the jobs of the configuration that was loaded last.
func (d *Daemon) known() []*jobs.Job {
	d.reloading.Lock()
	defer d.reloading.Unlock()
	return d.config.Jobs
}

// drained reports whether somebody asked this replica to take no more runs.
func (d *Daemon) drained() bool {
	s := d.working.Load()
	return s != nil && s.Draining()
}

// wake lets the scheduler look at the ledger now.
func (d *Daemon) wake() {
	d.reloading.Lock()
	defer d.reloading.Unlock()
	if d.sched != nil {
		d.sched.Wake()
	}
}
