package fleet

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/boottime"
	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/internal/fleet/record"
	"github.com/cronlatch/cronlatch/jobs"
)

// mailbox is what a channel of a fleet has got.
type mailbox struct {
	url string

	mu    sync.Mutex
	posts int
	ids   map[string]int // how often each message came
	heard []string       // event and job of each message, the first time that it came
}

func newMailbox(t *testing.T) *mailbox {
	t.Helper()
	m := &mailbox{ids: map[string]int{}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Events []struct {
				ID    string `json:"id"`
				Event string `json:"event"`
				Job   string `json:"job"`
			} `json:"events"`
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		m.posts++
		for _, e := range body.Events {
			if m.ids[e.ID]++; m.ids[e.ID] == 1 {
				m.heard = append(m.heard, e.Event+" "+e.Job)
			}
		}
	}))
	t.Cleanup(server.Close)
	m.url = server.URL
	return m
}

func (m *mailbox) got() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(slices.Values(m.heard))
}

// twice is how many messages came more than once.
func (m *mailbox) twice() (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, times := range m.ids {
		if times > 1 {
			n++
		}
	}
	return n
}

func (m *mailbox) settings(ttl time.Duration, list ...Job) Settings {
	return Settings{TTL: ttl, Jobs: list, Top: []string{
		fmt.Sprintf("channels: {ops: {webhook: {url: %q, secret: %s, allow_private: true}}}", m.url, environCanary),
	}}
}

const tellAll = "notify: {on_failure: [ops], on_recovery: [ops], on_missed: [ops], on_lost: [ops]}"

// wellOnce fails until somebody says that it shall not.
func wellOnce() Job {
	return Job{Name: "sick", Command: script(`test -e "$FLEET_DIR/well"`), Keys: []string{tellAll}}
}

// nothingLeft waits until all that has happened was said.
func (f *Fleet) nothingLeft() {
	f.tb.Helper()
	until(f.tb, "everything was said", 2*patience, func() bool {
		var left int
		err := f.DB.Main.NewRaw(`SELECT (SELECT count(*) FROM job_runs WHERE notify AND state = 'finished')
			+ (SELECT count(*) FROM outbox WHERE state <> 'sent')`).Scan(f.tb.Context(), &left)
		return err == nil && left == 0
	})
}

// Each event of a fleet of three is one message: a failure, the recovery after it, a missed run, a lost one, an overdue job.
func TestAnEventIsOneMessage(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		t.Helper()
		m := newMailbox(t)
		f := New(t, url, m.settings(roomyTTL,
			wellOnce(),
			Job{Name: "nowhere", Keys: []string{"only_on: {zone: none}", "start_deadline: 1s", tellAll}},
			Job{Name: "long", Args: []string{"-for", "3m"}, OnLost: "fail", Keys: []string{tellAll}},
			Job{Name: "never", Command: script("exit 9"), Keys: []string{"max_age: 1s", "notify: {on_overdue: [ops]}"}},
		))
		f.Trigger("never")
		pass(t, boottime.Now()+1500*time.Millisecond) // its max_age
		all := []*Replica{f.StartReady("a"), f.StartReady("b"), f.StartReady("c")}
		f.WaitFinished(f.Trigger("sick").ID)
		f.nothingLeft()
		f.allow("well")
		f.WaitFinished(f.Trigger("sick").ID)
		f.WaitFinished(f.Trigger("sick").ID) // a second success is no news
		missed := f.WaitFinished(f.Trigger("nowhere").ID)
		require.Equal(t, jobs.OutcomeMissed, missed.Outcome)
		lost := f.WaitAlive(f.Trigger("long").ID, record.Main)
		all[slices.IndexFunc(all, func(r *Replica) bool { return r.Name == lost.Replica })].Kill()
		f.WaitRun(lost.ID, "the killed replica's run is lost", wasLost)
		until(t, "each event was said", 2*patience, func() bool { return len(m.got()) >= 5 })
		f.nothingLeft()
		assert.Equal(t, []string{"failure sick", "lost long", "missed nowhere", "overdue never", "recovery sick"}, m.got())
		assert.LessOrEqual(t, m.twice(), 1, "only what the killed replica was about to send may come twice")
		for _, r := range all {
			assert.NotContains(t, r.Log(), environCanary)
		}
	})
}

// One failure is one message also when the replica that wrote the outcome is killed anywhere between the outcome and the mark
// that the message was sent. Only after the receiver's answer it comes twice, with the same id.
func TestAMessageSurvivesItsReplica(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		t.Helper()
		points := map[string]int{"notifying": 0, "notify.COMMIT:before": 0, "sent": 1}
		if strings.HasPrefix(url, "sqlite:") { // the other half: who is killed while it sends is waited for until its lease ends
			points = map[string]int{"notifying": 0, "notify.COMMIT:after": 0, "sending": 0}
		}
		for point, twice := range points {
			t.Run(point, func(t *testing.T) {
				t.Parallel()
				url := another(t, url)
				m := newMailbox(t)
				f := New(t, url, m.settings(roomyTTL, wellOnce()))
				env, hit := f.failAt(point, "kill")
				var all []*Replica
				for _, name := range []string{"a", "b", "c"} {
					all = append(all, f.StartReady(name, append(env, unwatched)...))
				}
				f.WaitFinished(f.Trigger("sick").ID)
				until(t, "a replica is killed at "+point, patience, func() bool {
					return slices.ContainsFunc(all, func(r *Replica) bool { return r.Ended() })
				})
				require.True(t, hit())
				f.nothingLeft()
				assert.Equal(t, []string{"failure sick"}, m.got())
				assert.Equal(t, twice, m.twice())
			})
		}
	})
}

// another is a database of the same kind.
func another(t *testing.T, url string) string {
	t.Helper()
	if strings.HasPrefix(url, "sqlite:") {
		return sqliteURL(t)
	}
	return dbtest.PostgresURL(t)
}
