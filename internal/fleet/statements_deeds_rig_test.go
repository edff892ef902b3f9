package fleet

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/uptrace/bun/dialect"

	"github.com/cronlatch/cronlatch/configs"
	"github.com/cronlatch/cronlatch/internal/dbtime"
	"github.com/cronlatch/cronlatch/internal/wire"
	"github.com/cronlatch/cronlatch/jobs"
)

// hasty lets retention, and the giving up of messages, begin at once.
const hasty = "CRONLATCH_EVERY=500ms"

// instants is how many a backfill has here, and old how many runs retention finds.
const (
	instants = 4
	old      = 125
)

// deeds is a fleet of one daemon, and of another one when that is killed, of which the same is asked.
type deeds struct {
	f    *Fleet
	a, b *Replica // b is nil while a lives
	mail *mailbox
}

func deedSettings(m *mailbox, sick string) Settings {
	s := m.settings(faultTTL,
		wellOnce(),
		Job{Name: "old", Keys: []string{"history: {keep: 2, keep_for: 1h}"}},
		Job{Name: "holds"},
		Job{Name: "daily", Schedule: "0 0 0 * * *", Resource: "daily-YYYY-MM-DD", Keys: []string{"once_per: resource"}},
		Job{Name: "nowhere", Keys: []string{"only_on: {zone: none}"}},
		Job{Name: "long", Args: []string{"-for", "30s"}, OnLost: "fail"},
	)
	s.Top[0] = fmt.Sprintf("channels: {ops: {webhook: {url: %q, allow_private: true}}, flaky: {webhook: {url: %q, allow_private: true}}}", m.url, sick)
	return s
}

// newDeeds makes the database with which every case begins.
func newDeeds(t *testing.T, url string) *wreck {
	t.Helper()
	t.Run("seed", func(t *testing.T) { // with its end nobody is connected to the database
		f := New(t, url, deedSettings(newMailbox(t), "http://127.0.0.1:1"))
		config, err := configs.Load(f.config(), configs.Options{Getenv: os.Getenv})
		f.must(err)
		job := func(name string) *jobs.Job {
			j, err := config.Job(name)
			f.must(err)
			return j
		}
		begin := f.now().Add(-100 * time.Hour).Truncate(time.Second)
		rows := make([]jobs.NewRun, old)
		for i := range rows {
			outcome := jobs.OutcomeSkipped
			switch i {
			case 0:
				outcome = jobs.OutcomeFailed
			case old / 2:
				outcome = jobs.OutcomeSucceeded
			}
			rows[i] = job("old").EndedRun(begin.Add(time.Duration(i)*time.Minute), outcome, "", nil)
		}
		held := jobs.ManualRun(jobs.TriggerRequest{Job: job("holds"), RequestID: "held", RequestedBy: "test"}, f.now())
		held.State = jobs.StateHeld
		f.insert(append(rows, held))
		f.exec(`UPDATE job_runs SET finished_at = scheduled_at WHERE job = 'old'`)
		at := dbtime.Arg(f.DB.Main.Dialect().Name(), f.now().Add(-25*time.Hour))
		for _, channel := range []string{"gone", "flaky"} { // both are given up: nobody knows the one, and the other one does not take it
			f.exec(`INSERT INTO outbox (key, channel, event, job, payload, created_at, due_at) VALUES (?, ?, 'failure', 'old', ?, ?, ?)`,
				channel, channel, `{"id": "`+channel+`", "event": "failure", "job": "old", "text": "old failed"}`, at, at)
		}
	})
	require.False(t, t.Failed())
	return &wreck{url: url, dir: t.TempDir()}
}

func (f *Fleet) insert(rows []jobs.NewRun) {
	f.tb.Helper()
	d, query := f.DB.Main.Dialect().Name(), jobs.InsertRunsSQLite
	if d == dialect.PG {
		query = jobs.InsertRunsPostgres
	}
	doc, err := jobs.EncodeRuns(d, rows)
	f.must(err)
	_, err = jobs.ScanRuns(f.tb.Context(), f.DB.Main.NewRaw(query, doc))
	f.must(err)
}

func (w *wreck) deeds(t *testing.T) *deeds {
	t.Helper()
	flaky := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	t.Cleanup(flaky.Close)
	d := &deeds{mail: newMailbox(t)}
	d.f = New(t, w.copy(t), deedSettings(d.mail, flaky.URL))
	return d
}

// revive starts another daemon when the first one was killed, after a look at what that has left behind.
func (d *deeds) revive() {
	d.f.tb.Helper()
	if d.b != nil || !d.a.Ended() {
		return
	}
	require.Equal(d.f.tb, -1, d.a.code)
	d.isWhole()
	d.f.exec(`UPDATE outbox SET claimed_until = NULL WHERE state = 'pending'`) // as if the lease of its sender had ended
	d.b = d.f.StartReady("b", unwatched, hasty)
}

// until waits for what a daemon does, whichever.
func (d *deeds) until(what string, condition func() bool) {
	d.f.tb.Helper()
	until(d.f.tb, what, 2*patience, func() bool { d.revive(); return condition() })
}

// ask asks the daemon that lives, and again when it dies before it has answered.
func (d *deeds) ask(path string, body, out any) (status int) {
	d.f.tb.Helper()
	d.until("an answer to "+path, func() bool {
		r := d.a
		if d.b != nil {
			r = d.b
		}
		var err error
		if status, err = d.f.tryPost(r, path, body, out); err != nil {
			require.Nil(d.f.tb, d.b, "the other daemon answers: %v", err)
			r.Wait(patience)
		}
		return err == nil
	})
	return status
}

func (f *Fleet) tryPost(r *Replica, path string, body, out any) (status int, err error) {
	f.tb.Helper()
	text, err := json.Marshal(body)
	f.must(err)
	if r.address() == "" {
		return 0, errors.New("it was not ready")
	}
	req, err := http.NewRequestWithContext(f.tb.Context(), http.MethodPost, r.address()+path, bytes.NewReader(text))
	f.must(err)
	req.Header.Set("Authorization", "Bearer "+f.token())
	req.Header.Set("Content-Type", "application/json")
	client := http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close() //nolint:errcheck // it was read to its end, or the test has failed
	return res.StatusCode, json.NewDecoder(res.Body).Decode(out)
}

// all asks for everything, one thing after the other: nothing else runs when a daemon is killed by what is asked of it.
func (d *deeds) all() {
	t := d.f.tb
	t.Helper()
	d.until("retention has deleted, and is over where it is killed", func() bool {
		return d.f.count(`job = 'old'`) <= 4 && (d.b != nil || strings.Contains(d.a.Log(), "deleted old history"))
	})
	d.until("messages are given up", func() bool { return d.number(`SELECT count(*) FROM outbox WHERE state = 'given_up'`) == 2 })
	first := d.start("sick", "r1")
	d.finished(first)
	d.said("failure")
	d.f.must(os.WriteFile(filepath.Join(d.f.dir, "well"), nil, 0o600))
	var answer map[string]any
	d.ask(fmt.Sprintf("/runs/%d/retry", first), wire.Retry{}, &answer)
	d.until("it is well", func() bool { return d.f.count(`job = 'sick' AND outcome = 'succeeded'`) == 1 })
	d.said("recovery")
	d.ask(fmt.Sprintf("/runs/%d/retry", d.number(`SELECT id FROM job_runs WHERE job = 'holds'`)), wire.Retry{}, &answer)
	d.until("what was held has run", func() bool { return d.f.count(`job = 'holds' AND state = 'finished'`) == 1 })
	d.backfill()
	for _, path := range []string{"pause", "pause", "resume"} {
		require.Equal(t, http.StatusOK, d.ask("/jobs/long/"+path, map[string]any{}, &answer), path)
	}
	nowhere := d.start("nowhere", "r2")
	d.ask(fmt.Sprintf("/runs/%d/cancel", nowhere), wire.Cancel{}, &answer)
	long := d.start("long", "r3")
	d.until("it runs", func() bool { return d.f.count(`id = ? AND state <> 'pending'`, long) == 1 })
	d.ask(fmt.Sprintf("/runs/%d/cancel", long), wire.Cancel{}, &answer)
	d.finished(long)
	drained := "a" // who was killed is still heard of
	if d.b != nil {
		drained = "b" // who was killed may not have been heard of at all
	}
	for _, path := range []string{"drain", "undrain"} {
		require.Equal(t, http.StatusOK, d.ask("/replicas/"+drained+"/"+path, wire.DrainRequest{}, &answer), path)
		if path == "drain" && d.b == nil {
			d.until("it drains", func() bool { return d.a.Ended() || d.a.readyz() != http.StatusOK })
		}
	}
	require.Equal(t, first, d.start("sick", "r1"), "asked again with the same id, it is the same run")
}

func (d *deeds) start(job, request string) int64 {
	d.f.tb.Helper()
	var run wire.Run
	status := d.ask("/jobs/"+job+"/runs", wire.Start{RequestID: request}, &run)
	require.Contains(d.f.tb, []int{http.StatusOK, http.StatusCreated}, status)
	return run.ID
}

func (d *deeds) finished(run int64) {
	d.f.tb.Helper()
	d.until("a run has ended", func() bool { return d.f.count(`id = ? AND state = 'finished'`, run) == 1 })
}

// said waits until a message was sent; nobody waits for the quiet after it.
func (d *deeds) said(event string) {
	d.f.tb.Helper()
	d.until(event+" is sent", func() bool {
		return d.number(`SELECT count(*) FROM outbox WHERE state = 'sent' AND event = ?`, event) == 1
	})
	d.f.exec(`UPDATE outbox SET claimed_until = NULL WHERE state = 'sent'`)
}

func (d *deeds) backfill() {
	d.f.tb.Helper()
	from := time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, -instants-3)
	var answer wire.Backfilled
	body := wire.Backfill{From: from, Until: from.AddDate(0, 0, instants-1), Concurrency: 2}
	require.Equal(d.f.tb, http.StatusOK, d.ask("/jobs/daily/backfill", body, &answer))
	d.until("the backfill has ended", func() bool { return d.f.count(`job = 'daily' AND state = 'finished'`) == instants })
}

// number is one number of the database; -1 is none.
func (d *deeds) number(query string, args ...any) int64 {
	var n int64
	if err := d.f.DB.Main.NewRaw(query, args...).Scan(d.f.tb.Context(), &n); err != nil {
		return -1
	}
	return n
}
