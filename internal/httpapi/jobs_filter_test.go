package httpapi_test

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/internal/httpapi"
	"github.com/cronlatch/cronlatch/internal/wire"
	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/scheduler"
)

// Each key is asked for what it selects and what it does not; the page has as many as it should, wherever they stand.
func TestJobsByFilter(t *testing.T) {
	t.Parallel()
	onRuns(t, func(g *runsRig) {
		done := g.start(report, "{}", http.StatusCreated)
		g.exec("UPDATE job_runs SET state = 'finished', outcome = 'failed', reason = 'exit', finished_at = created_at WHERE id = ?", done.ID)
		g.start("/jobs/hand", "{}", http.StatusCreated)
		running := g.start("/jobs/hand", "{}", http.StatusCreated)
		g.exec("UPDATE job_runs SET state = 'running', fencing_token = 1, started_at = created_at WHERE id = ?", running.ID)
		g.exec("INSERT INTO plan_positions (job, schedule_hash, position) SELECT 'elsewhere', 'x', created_at FROM job_runs WHERE id = ?", done.ID)
		assert.Equal(g, http.StatusOK, g.post("/jobs/off/pause", "{}").Code)
		for text, want := range map[string]string{
			"":                                 "elsewhere hand off team/report:daily",
			"job:team/*,off":                   "off team/report:daily",
			"a":                                "hand team/report:daily",
			"tag:finance":                      "team/report:daily",
			"-tag:finance":                     "elsewhere hand off",
			"enabled:false":                    "off",
			"-enabled:true":                    "elsewhere off",
			"defined:false":                    "elsewhere",
			"kind:command":                     "hand off team/report:daily",
			"paused:true":                      "off",
			"paused:false enabled:true":        "hand team/report:daily",
			"state:running":                    "hand",
			"state:pending":                    "hand",
			"-state:running":                   "elsewhere off team/report:daily",
			"state:idle defined:true":          "off team/report:daily",
			"outcome:failed":                   "team/report:daily",
			"outcome:succeeded":                "",
			"-outcome:failed":                  "elsewhere hand off",
			"reason:exit,signal":               "team/report:daily",
			"state:idle outcome:failed daily":  "team/report:daily",
			"state:idle -paused:true -tag:foo": "elsewhere team/report:daily",
		} {
			page := got[wire.JobPage](g, "/jobs?filter="+url.QueryEscape(text))
			assert.Equal(g, want, strings.Join(jobNames(page), " "), text)
			for _, j := range page.Jobs {
				assert.NotNil(g, j.State, text)
			}
			assert.Empty(g, page.NextCursor, text)
		}
		first := got[wire.JobPage](g, "/jobs?limit=1&filter=-paused:true+defined:true")
		assert.Equal(g, []string{"hand"}, jobNames(first))
		second := got[wire.JobPage](g, "/jobs?limit=1&filter=-paused:true+defined:true&cursor="+first.NextCursor)
		assert.Equal(g, []string{"team/report:daily"}, jobNames(second))
		assert.Empty(g, second.NextCursor)
		assert.Empty(g, jobNames(got[wire.JobPage](g, "/jobs?tag=finance&filter=job:hand")))
		p := g.refused(g.as("viewer", http.MethodGet, "/jobs?filter=jbo:x&limit=0", ""), http.StatusUnprocessableEntity, "invalid")
		assert.Len(g, p["errors"], 2)
	})
}

// The parameters are terms, too: a row must be meant by all.
func TestAuditByFilter(t *testing.T) {
	t.Parallel()
	onRuns(t, func(g *runsRig) {
		run := g.start("/jobs/hand", `{"reason": "x"}`, http.StatusCreated)
		assert.Equal(g, http.StatusOK, g.post("/jobs/off/pause", "{}").Code)
		assert.Equal(g, http.StatusOK, g.as("admin", http.MethodPost, "/jobs/off/resume", "{}").Code)
		for text, want := range map[string]string{
			"filter=":                                    "job.resume job.pause run.trigger",
			"filter=action:job.*":                        "job.resume job.pause",
			"filter=action:job.*&actor=o":                "job.pause",
			"filter=-actor:o":                            "job.resume",
			"filter=outcome:success+job:hand":            "run.trigger",
			"filter=run:1,2,3&run_id=" + itoa(run.ID):    "run.trigger",
			"filter=since:1h+until:2026-01-01T00:00:00Z": "",
			"filter=since:1h&action=job.*&job=hand":      "",
			"filter=of":                                  "job.resume job.pause",
			"filter=-of":                                 "run.trigger",
			"since=2100-01-01T00:00:00Z&filter=since:1h": "",
		} {
			var actions []string
			for _, e := range got[wire.AuditPage](g, "/audit?"+text).Entries {
				actions = append(actions, e.Action)
			}
			assert.Equal(g, want, strings.Join(actions, " "), text)
		}
		p := g.refused(g.as("viewer", http.MethodGet, "/audit?filter=run:x&run_id=0&since=1", ""), http.StatusUnprocessableEntity, "invalid")
		assert.Len(g, p["errors"], 3)
	})
}

// What a caller ends is told to those who count, once; what it does not end is not.
func TestWhatIsCancelledHereIsCounted(t *testing.T) {
	t.Parallel()
	heard := &endings{}
	g := newRunsRig(t, dbtest.SQLite(t), func(f *httpapi.Fleet) { f.Observe = []scheduler.Observer{heard} })
	pending, running := g.start("/jobs/hand", "{}", http.StatusCreated), g.start("/jobs/hand", "{}", http.StatusCreated)
	g.exec("UPDATE job_runs SET state = 'running', fencing_token = 1, started_at = created_at WHERE id = ?", running.ID)
	for _, id := range []int64{pending.ID, running.ID, pending.ID} {
		g.post("/runs/"+itoa(id)+"/cancel", "{}")
	}
	assert.Equal(t, []string{itoa(pending.ID) + " cancelled"}, heard.ends)
}

// endings hears what is ended.
type endings struct{ ends []string }

func (e *endings) Claimed(*jobs.Run) {}

func (e *endings) Ended(end *scheduler.Ending) {
	if end.Written && !end.Claimed {
		e.ends = append(e.ends, itoa(end.Run.ID)+" "+string(end.Run.Outcome))
	}
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
