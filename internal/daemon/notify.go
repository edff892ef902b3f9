package daemon

import (
	"context"
	"fmt"
	"slices"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/internal/notify"
	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/scheduler"
)

// messengers are what tells others: of runs that begin here, and of what is in the outbox. The scheduler hears of the first one.
func (d *Daemon) messengers(db *database.DB, o *scheduler.Options) (*notify.Pinger, *notify.Sender, error) {
	outbox, err := scheduler.OpenOutbox(db.Main)
	if err != nil {
		return nil, nil, fmt.Errorf("opening the outbox: %w", err)
	}
	pinger := notify.NewPinger(d.knownJob, d.o.Log)
	o.Observe = append(o.Observe, pinger)
	return pinger, notify.NewSender(notify.Options{
		Outbox: outbox, Channels: d.channels, Jobs: d.known, Check: db.CheckFile, Replica: d.o.Replica, Nonce: o.Nonce,
		Lease: scheduler.OutboxLease(o.TTL), Log: d.o.Log, Audit: d.o.Audit,
	}), nil
}

// knownJob is a job of the configuration that was loaded last; nil is none.
func (d *Daemon) knownJob(name string) *jobs.Job {
	known := d.known()
	i := slices.IndexFunc(known, func(j *jobs.Job) bool { return j.Name == name })
	if i < 0 {
		return nil
	}
	return known[i]
}

// channels are those of the configuration that was loaded last.
func (d *Daemon) channels() map[string]jobs.Channel {
	d.reloading.Lock()
	defer d.reloading.Unlock()
	return d.config.Channels
}

// testChannel sends a message to a channel of the configuration that was loaded last.
func (d *Daemon) testChannel(ctx context.Context, name, by string) error {
	return notify.Test(ctx, d.channels(), name, d.o.Replica, by)
}
