package httpapi_test

import (
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/internal/explain"
	"github.com/cronlatch/cronlatch/internal/wire"
)

func (g *runsRig) story(path string) wire.Story {
	g.Helper()
	w := g.as("viewer", http.MethodGet, path, "")
	require.Equal(g, http.StatusOK, w.Code, w.Body.String())
	return decode[wire.Story](g.T, w)
}

func TestExplain(t *testing.T) {
	t.Parallel()
	onRuns(t, func(g *runsRig) {
		s := g.story(report + "/explain")
		assert.Nil(g, s.RunID)
		assert.Contains(g, s.Verdict, "team/report:daily has never run")
		assert.Contains(g, s.Next, "cronlatch reload")
		run := g.start(report, `{"reason": "because"}`, http.StatusCreated)
		for _, path := range []string{report + "/explain", fmt.Sprintf("/runs/%d/explain", run.ID)} {
			s = g.story(path)
			assert.Equal(g, run.ID, *s.RunID)
			assert.Equal(g, "pending", *s.State)
			assert.Contains(g, s.Verdict, "has not started: no replica is there")
			assert.Equal(g, "Asked for by o: because.", s.Steps[0].Text)
			assert.Equal(g, string(explain.Planned), s.Steps[0].Kind)
		}
		s = g.story(report + "/explain?at=" + url.QueryEscape("2h ago"))
		assert.Contains(g, s.Verdict, "no replica has ever planned the job")
		s = g.story(report + "/explain?at=" + url.QueryEscape("2020-03-29 02:30"))
		assert.Equal(g, "2020-03-29T02:30:00Z", s.ScheduledAt.Format("2006-01-02T15:04:05Z07:00"))
		p := g.refused(g.as("viewer", http.MethodGet, "/jobs/hnad/explain", ""), http.StatusNotFound, "not_found")
		assert.Contains(g, p["detail"], `did you mean "hand"?`)
		g.refused(g.as("viewer", http.MethodGet, "/runs/999/explain", ""), http.StatusNotFound, "not_found")
		for _, bad := range []string{"/runs/x/explain", report + "/explain?at=yesterday", report + "/explain?at="} {
			g.refused(g.as("viewer", http.MethodGet, bad, ""), http.StatusUnprocessableEntity, "invalid")
		}
		g.refused(g.as("viewer", http.MethodGet, report+"/explain?when=now", ""), http.StatusBadRequest, "query")
		g.refused(g.as("locker", http.MethodGet, report+"/explain", ""), http.StatusForbidden, "forbidden")
	})
}

// The kinds in the document are those that there are.
func TestDocumentedKindsOfSteps(t *testing.T) {
	t.Parallel()
	g := newRunsRig(t, dbtest.SQLite(t), nil)
	w := g.as("viewer", http.MethodGet, "/openapi.json", "")
	doc := decode[struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]struct {
					Enum []*string `json:"enum"`
				} `json:"properties"`
			} `json:"schemas"`
		} `json:"components"`
	}](t, w)
	documented := []explain.Kind{}
	for _, k := range doc.Components.Schemas["StoryStep"].Properties["kind"].Enum {
		documented = append(documented, explain.Kind(*k))
	}
	assert.Equal(t, explain.Kinds(), documented)
}
