package fleet

import (
	"errors"
	"fmt"
	"time"

	"github.com/cronlatch/cronlatch/internal/boottime"
)

// isWhole checks that every deed was done wholly or not at all. A daemon that was killed a moment ago may have a COMMIT on
// its way.
func (d *deeds) isWhole() {
	d.f.tb.Helper()
	var err error
	for deadline := boottime.Now() + time.Second; boottime.Now() < deadline; {
		if err = d.whole(); err == nil {
			return
		}
		pass(d.f.tb, boottime.Now()+poll)
	}
	d.f.tb.Errorf("the database is between two states:\n%v", err)
}

// pairs are numbers that are the same before and after every whole step: what was done, and what says who did it or what
// follows from it.
func pairs() map[string][2]string {
	const runs, audit, outbox = `SELECT count(*) FROM job_runs WHERE `, `SELECT count(*) FROM audit_log WHERE action = `, `SELECT count(*) FROM outbox WHERE `
	return map[string][2]string{
		"manual runs": {runs + `occurrence LIKE 'm:r%' AND attempt = 1`, audit + `'run.trigger'`},
		"cancelled":   {runs + `cancel_reason = 'requested' OR reason = 'requested'`, audit + `'run.cancel'`},
		"retried":     {runs + `trigger = 'retry' OR job = 'holds' AND state <> 'held'`, audit + `'run.retry'`},
		"resumed":     {`SELECT count(*) FROM job_pauses WHERE resumed_by <> ''`, audit + `'job.resume'`},
		"paused": {
			`SELECT count(*) FROM job_pauses`, `SELECT count(DISTINCT job) FROM audit_log WHERE action = 'job.pause'`,
		},
		"drained": {
			`SELECT count(*) FROM replicas WHERE drain_asked_at IS NOT NULL`,
			`SELECT count(*) FROM audit_log WHERE action = 'replica.drain' AND id = (
				SELECT max(id) FROM audit_log WHERE action IN ('replica.drain', 'replica.undrain') AND actor_type = 'user')`,
		},
		"told of a failure": {
			runs + `job = 'sick' AND outcome = 'failed' AND NOT notify`, outbox + `job = 'sick' AND event = 'failure'`,
		},
		"told of a recovery": {
			runs + `job = 'sick' AND outcome = 'succeeded' AND NOT notify`, outbox + `job = 'sick' AND event = 'recovery'`,
		},
		"in trouble": {
			`SELECT count(*) FROM job_troubles`,
			`SELECT coalesce(sum(CASE event WHEN 'failure' THEN 1 ELSE -1 END), 0) FROM outbox WHERE job = 'sick'`,
		},
		"given up":   {outbox + `state = 'given_up'`, audit + `'notify.give_up'`},
		"backfilled": {runs + `trigger = 'backfill'`, fmt.Sprintf(`SELECT %d * count(*) FROM audit_log WHERE action = 'job.backfill'`, instants)},
		"kept": {
			runs + `job = 'old' AND (outcome <> 'skipped' OR occurrence IN (
				SELECT occurrence FROM job_runs WHERE job = 'old' ORDER BY scheduled_at DESC LIMIT 2))`,
			`SELECT 4`,
		},
	}
}

// whole also says whether a message is marked as sent that has not arrived.
func (d *deeds) whole() error {
	d.f.tb.Helper()
	var errs []error
	for what, p := range pairs() {
		if is, should := d.number(p[0]), d.number(p[1]); is != should || is < 0 {
			errs = append(errs, fmt.Errorf("%s: %d, and not %d", what, is, should))
		}
	}
	if sent, came := d.number(`SELECT count(*) FROM outbox WHERE state = 'sent'`), len(d.mail.got()); sent > int64(came) {
		errs = append(errs, fmt.Errorf("%d messages are marked as sent, and %d came", sent, came))
	}
	return errors.Join(errs...)
}
