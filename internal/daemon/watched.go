package daemon

import (
	"os"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/internal/metrics"
	"github.com/cronlatch/cronlatch/internal/tracing"
)

// watched makes what tells others how this replica is: its metrics, and traces when the configuration or the environment asks for them.
func (d *Daemon) watched(db *database.DB) (err error) {
	host, _ := os.Hostname() // an attribute without a value is no reason not to run
	d.tracer, err = tracing.Start(tracing.Options{
		Getenv: d.o.Getenv, Replica: d.o.Replica, Host: host, Version: d.o.Version, Log: d.o.Log,
		Endpoint: d.o.Config.Tracing.Endpoint, Headers: d.o.Config.Tracing.Headers,
	})
	if err != nil {
		return err
	}
	m := metrics.New(metrics.Options{
		Version: d.o.Version, Log: d.o.Log, Fleet: metrics.Fleet{DB: db.Main, Check: db.CheckFile, TTL: d.o.Config.Lock.TTL},
	})
	d.reloading.Lock() // a reload may come before there is a scheduler
	defer d.reloading.Unlock()
	m.Know(d.config.Jobs)
	m.Reloaded(true)
	d.metrics = m
	return nil
}

// observe tells the metrics what became of a reload. The caller holds reloading.
func (d *Daemon) observe(ok bool) {
	if d.metrics == nil {
		return
	}
	if ok {
		d.metrics.Know(d.config.Jobs)
	}
	d.metrics.Reloaded(ok)
}
