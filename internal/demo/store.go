package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/migrations"
)

// seedBatch is how many rows one statement inserts.
const seedBatch = 1000

// clock is the time by which the history ends: that of the database, as everything in the ledger.
func clock(ctx context.Context, db bun.IDB) (time.Time, error) {
	var ms int64
	if err := db.NewRaw(sqliteClock).Scan(ctx, &ms); err != nil {
		return time.Time{}, fmt.Errorf("reading the database's clock: %w", err)
	}
	return time.UnixMilli(ms).UTC(), nil
}

// seed makes the database and puts the history into it, in one transaction.
func (o *Options) seed(ctx context.Context, path string) (err error) {
	db, err := database.Open(database.Target{Kind: database.SQLite, Path: path}, database.Options{AppName: "cronlatch demo"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err = migrations.Up(ctx, db.Main); err != nil {
		return err
	}
	config, err := parseConfig(configName)
	if err != nil {
		return err
	}
	ctx = database.WithTimeout(ctx, time.Minute)
	tx, err := db.Main.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("beginning a transaction: %w", err)
	}
	now, err := clock(ctx, tx)
	if err == nil {
		var h *history
		if h, err = newHistory(config, o.Seed, now); err == nil {
			err = h.insert(ctx, tx, o.Version)
		}
	}
	if err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit() //nolint:wrapcheck // wrapped by the caller
}

// insert writes all tables but the plan positions: the first replica begins each schedule when it is there, so that what falls
// due while it starts is not something that everybody has missed.
func (h *history) insert(ctx context.Context, tx bun.IDB, version string) error {
	for from := 0; from < len(h.entries); from += seedBatch {
		if err := h.insertRuns(ctx, tx, h.entries[from:min(from+seedBatch, len(h.entries))]); err != nil {
			return err
		}
	}
	first, err := h.firstRun()
	if err != nil {
		return err
	}
	for _, s := range []struct{ what, query, document string }{
		{"outputs", sqliteSeedOutputs, h.outputs()},
		{"locks", sqliteSeedLocks, h.locks()},
		{"tokens", sqliteSeedTokens, ""},
		{"lifetimes", sqliteSeedReplicas, h.replicas(version)},
		{"the audit", sqliteSeedAudit, h.audit()},
		{"the pause", sqliteSeedPause, encode(map[string]any{
			"job": jobCleanup, "reason": h.pauseReason(), "by": person, "from": h.pause.From.UnixMilli(), "until": h.pause.Until.UnixMilli(),
		})},
		{"the first run", jobs.InsertRunsSQLite, first},
	} {
		var args []any
		if s.document != "" {
			args = []any{s.document}
		}
		if _, err := tx.NewRaw(s.query, args...).Exec(ctx); err != nil {
			return fmt.Errorf("inserting %s: %w", s.what, err)
		}
	}
	return nil
}

// seeded is a row as the statement takes it: what planning would have inserted, and what came after.
type seeded struct {
	New        json.RawMessage `json:"new"`
	ID         int64           `json:"id"`
	Created    int64           `json:"created"`
	Started    *int64          `json:"started"`
	Finished   int64           `json:"finished"`
	Replica    string          `json:"replica"`
	Owner      string          `json:"owner"`
	Token      *int64          `json:"token"`
	ExitCode   *int            `json:"exit_code"`
	Cancel     jobs.Reason     `json:"cancel_reason"`
	CancelFact json.RawMessage `json:"cancel_detail"`
}

func (h *history) insertRuns(ctx context.Context, tx bun.IDB, entries []*entry) error {
	rows := make([]seeded, len(entries))
	for i, e := range entries {
		doc, err := jobs.EncodeRuns(dialect.SQLite, []jobs.NewRun{e.NewRun})
		if err != nil {
			return fmt.Errorf("encoding a run: %w", err)
		}
		r := seeded{
			New: json.RawMessage(doc[1 : len(doc)-1]), ID: e.id, Created: e.created.UnixMilli(), Finished: e.finished.UnixMilli(),
			Owner: e.owner(), ExitCode: e.exitCode, Cancel: e.cancel, CancelFact: json.RawMessage("{}"),
		}
		if e.ran() {
			r.Started, r.Token, r.Replica = new(e.started.UnixMilli()), &e.token, e.by.Name
		}
		if e.cancel != "" {
			r.CancelFact = e.Detail
		}
		rows[i] = r
	}
	if _, err := tx.NewRaw(sqliteSeedRuns, encode(rows)).Exec(ctx); err != nil {
		return fmt.Errorf("inserting runs: %w", err)
	}
	return nil
}

// firstRun is the row that the first replica finds: a long one, under a lock to take over.
func (h *history) firstRun() (string, error) {
	job, err := h.config.Job(jobIndex)
	if err != nil {
		return "", fmt.Errorf("the demo's configuration: %w", err)
	}
	request := jobs.TriggerRequest{Job: job, RequestID: "demo", RequestedBy: "demo"}
	return jobs.EncodeRuns(dialect.SQLite, []jobs.NewRun{jobs.ManualRun(request, h.now)})
}

func (h *history) outputs() string {
	type row struct {
		ID   int64  `json:"id"`
		Text string `json:"text"`
	}
	rows := []row{}
	for _, e := range h.entries {
		if e.output != "" {
			rows = append(rows, row{e.id, e.output})
		}
	}
	return encode(rows)
}

// locks are the rows that the last holder of each resource left behind.
func (h *history) locks() string {
	last := map[string]*entry{}
	for _, e := range h.entries {
		if old := last[e.Resource]; e.ran() && (old == nil || old.token < e.token) {
			last[e.Resource] = e
		}
	}
	rows := []map[string]any{}
	for resource, e := range last {
		rows = append(rows, map[string]any{
			"resource": resource, "owner": e.owner(), "token": e.token, "at": e.started.UnixMilli(), "released": e.finished.UnixMilli(),
		})
	}
	return encode(rows)
}

func (h *history) replicas(version string) string {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	rows := []map[string]any{}
	for i, l := range h.lifetimes {
		row := map[string]any{
			"name": l.Name, "nonce": l.Nonce, "host": host, "pid": 1000 + i, "version": version, "hash": h.config.Hash,
			"capacity": h.config.Capacity, "from": l.From.UnixMilli(), "until": l.Until.UnixMilli(), "left": l.Until.UnixMilli(),
		}
		if l.Killed {
			row["left"] = nil
		}
		rows = append(rows, row)
	}
	return encode(rows)
}

func (h *history) audit() string {
	rows := []map[string]any{}
	for _, n := range h.notes {
		row := map[string]any{
			"at": n.at.UnixMilli(), "action": n.action, "actor_type": n.actorType, "actor": n.actor, "job": n.job,
			"replica": n.replica, "reason": n.reason, "detail": map[string]any{}, "run_id": nil, "resource": "", "owner": "", "token": nil,
		}
		if n.facts != nil {
			row["detail"] = n.facts
		}
		if n.run != nil {
			row["run_id"], row["resource"] = n.run.id, n.run.Resource
			if n.replica != "" {
				row["owner"], row["token"] = n.run.owner(), n.run.token
			}
		}
		rows = append(rows, row)
	}
	return encode(rows)
}

func (h *history) pauseReason() string {
	for _, n := range h.notes {
		if n.job == jobCleanup && n.reason != "" {
			return n.reason
		}
	}
	return ""
}

// encode is a document for a statement; only values that JSON has come here.
func encode(v any) string {
	doc, err := json.Marshal(v)
	if err != nil {
		panic("demo: encoding an argument: " + err.Error())
	}
	return string(doc)
}
