package main

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/internal/wire"
)

// screen is what a command has printed so far.
type screen struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *screen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func (s *screen) shows(t *testing.T, text string) {
	t.Helper()
	eventually(t, func() bool { return strings.Contains(s.String(), text) }, text)
}

func TestAuditList(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, at string) {
		t.Helper()
		w := connected(t, at)
		w.run(t, "audit", "list").says(t, exitOK, "", "cronlatch: no such rows in the audit\n")
		w.run(t, "jobs", "pause", "backup:db", "--reason", "a\x1b[2Jb\nc")
		w.run(t, "jobs", "resume", "backup:db")
		w.run(t, "pause-all")
		list := w.run(t, "audit", "list", "--job", "backup:db")
		assert.Regexp(t, `(?m)^AT +ACTION +ACTOR +JOB +RUN +RESOURCE +REPLICA +REASON$`, list.out)
		assert.Contains(t, list.out, `a\x1b[2Jb\nc`)
		assert.NotContains(t, list.out, "\x1b")
		actions := func(args ...string) (got []string) {
			for _, e := range decode[[]wire.AuditEntry](t, w.run(t, append([]string{"audit", "list", "-o", "json"}, args...)...).out) {
				got = append(got, e.Action)
			}
			return got
		}
		assert.Equal(t, []string{"job.pause", "job.resume", "job.pause"}, actions())
		assert.Equal(t, []string{"job.resume"}, actions("--action", "job.resume"))
		assert.Equal(t, []string{"job.pause"}, actions("--limit", "1"))
		assert.Equal(t, []string{"job.resume", "job.pause"}, actions("--job", "backup:db", "--actor", requester()))
		assert.Equal(t, []string{"job.pause", "job.pause"}, actions("--filter", "action:job.* -action:job.resume outcome:success since:1h"))
		assert.Equal(t, []string{"job.pause"}, actions("--filter", "backup action:job.*", "--action", "job.pause"))
		assert.Empty(t, actions("--filter", "actor:nobody"))
		assert.Regexp(t, `^\d+\n\d+\n\d+\n$`, w.run(t, "audit", "list", "-o", "name").out)
		assert.Empty(t, actions("--since", "2999-01-01T00:00:00Z"))
		assert.Equal(t, 3, strings.Count(w.run(t, "audit", "list", "-o", "ndjson").out, "\n"))
	})
}

// A tail prints what is new, goes on after an outage without a gap, and ends well.
func TestAuditTail(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, at string) {
		t.Helper()
		w := connected(t, at)
		address, gate := gated(t, w.served(t, at))
		w.run(t, "jobs", "pause", "by-hand", "--reason", "before")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var out, errors screen
		ended := make(chan int, 1)
		go func() {
			ended <- run(ctx, process{
				Args: []string{"audit", "tail", "--server", address}, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errors,
				Getenv: func(string) string { return "" }, Dir: w.dir, Now: testNow, Patience: w.patience,
			})
		}()
		gate.waitAsked(t, 2) // what was there at the first question is not new
		w.run(t, "jobs", "pause", "by-hand", "--reason", "one\x1b")
		out.shows(t, `by-hand reason='one\x1b'`)
		gate.close()
		errors.shows(t, "does not answer; waiting")
		w.run(t, "jobs", "pause", "by-hand", "--reason", "two")
		gate.open()
		out.shows(t, "reason=two")
		errors.shows(t, "answers again")
		w.run(t, "jobs", "resume", "by-hand")
		out.shows(t, "job.resume")
		cancel()
		assert.Equal(t, exitOK, <-ended)
		assert.NotContains(t, out.String(), "before")
		assert.Equal(t, 3, strings.Count(out.String(), "\n"), "each once: %s", out.String())
	})
}

// A row whose transaction ended late appears behind rows that are newer; it is printed all the same, and once.
func TestATailMissesNoLateRow(t *testing.T) {
	t.Parallel()
	begin := testNow()
	tail := &auditTail{seen: map[int64]time.Time{}}
	at := func(id int64, seconds int) wire.AuditEntry {
		return wire.AuditEntry{ID: id, At: begin.Add(time.Duration(seconds) * time.Second)}
	}
	ids := func(now int, newestFirst ...wire.AuditEntry) (ids []int64) {
		for _, e := range tail.fresh(newestFirst, begin.Add(time.Duration(now)*time.Second-tailOverlap)) {
			ids = append(ids, e.ID)
		}
		return ids
	}
	assert.Equal(t, []int64{3, 5}, ids(10, at(5, 9), at(3, 8)))
	assert.Equal(t, []int64{4}, ids(20, at(5, 9), at(4, 7), at(3, 8)))
	assert.Empty(t, ids(60, at(5, 9), at(4, 7), at(3, 8)))
	assert.Equal(t, []int64{6}, ids(69, at(6, 68), at(5, 9)))
	assert.Equal(t, begin.Add(9*time.Second), tail.since)
	assert.Len(t, tail.seen, 2, "what cannot come again is forgotten")
}
