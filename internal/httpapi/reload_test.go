package httpapi_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/cronlatch/cronlatch/internal/httpapi"
)

const reloadPath = "/-/reload"

// reloading is an API whose reload answers this.
func reloading(t *testing.T, done httpapi.Reloaded, err error) (g *rig, actors *[]string) {
	t.Helper()
	actors = &[]string{}
	return newRig(t, func(o *httpapi.Options) {
		withAuth(o)
		o.Reload = func(_ context.Context, actor string) (httpapi.Reloaded, error) {
			*actors = append(*actors, actor)
			return done, err
		}
	}), actors
}

func asAdmin() []string { return []string{"Authorization", "Bearer admin"} }

func TestReloadSaysWhatChanged(t *testing.T) {
	t.Parallel()
	g, actors := reloading(t, httpapi.Reloaded{Added: []string{"a", "b"}, Jobs: 3, Hash: "0f"}, nil)
	w := g.ask(http.MethodPost, reloadPath, "", asAdmin()...)
	assert.Equal(t, http.StatusOK, w.Code)
	assert.JSONEq(t, `{"added": ["a", "b"], "removed": [], "changed": [], "jobs": 3, "definitions": "0f"}`, w.Body.String())
	assert.Equal(t, []string{"root"}, *actors, "the audit knows who it was")

	g.refused(g.ask(http.MethodPost, reloadPath+"?force=yes", "", asAdmin()...), http.StatusBadRequest, "query")
	g.refused(g.ask(http.MethodGet, reloadPath, "", asAdmin()...), http.StatusMethodNotAllowed, "method")
	g.refused(g.ask(http.MethodPost, reloadPath, "", "Authorization", "Bearer operator"), http.StatusForbidden, "forbidden")
	g.refused(g.ask(http.MethodPost, reloadPath, "", "Authorization", "Bearer admin", "Sec-Fetch-Site", "cross-site"), http.StatusForbidden, "cross_site")
	assert.Len(t, *actors, 1, "nothing else reached it")
}

func TestARejectedConfigurationIsAnAnswer(t *testing.T) {
	t.Parallel()
	wrong := httpapi.ConfigError{Field: "cronlatch.yaml", Line: 4, Column: 7, Code: "duration", Message: "timeout must be a duration"}
	g, _ := reloading(t, httpapi.Reloaded{}, &httpapi.RejectedError{Errors: []httpapi.ConfigError{wrong}})
	p := g.refused(g.ask(http.MethodPost, reloadPath, "", asAdmin()...), http.StatusUnprocessableEntity, "config")
	assert.Equal(t, []any{map[string]any{
		"field": "cronlatch.yaml", "line": 4.0, "column": 7.0, "code": "duration", "message": "timeout must be a duration",
	}}, p["errors"])

	g, _ = reloading(t, httpapi.Reloaded{}, &httpapi.RejectedError{Restart: true, Errors: []httpapi.ConfigError{
		{Field: "listen", Code: "restart", Message: "only a restart can change this key"},
	}})
	p = g.refused(g.ask(http.MethodPost, reloadPath, "", asAdmin()...), http.StatusConflict, "restart")
	assert.Equal(t, []any{map[string]any{"field": "listen", "code": "restart", "message": "only a restart can change this key"}}, p["errors"])
}

func TestWhyThereIsNoReload(t *testing.T) {
	t.Parallel()
	g, _ := reloading(t, httpapi.Reloaded{}, &httpapi.NotReadyError{Code: "draining", Reason: "this replica is leaving"})
	g.refused(g.ask(http.MethodPost, reloadPath, "", asAdmin()...), http.StatusServiceUnavailable, "draining")

	g, _ = reloading(t, httpapi.Reloaded{}, errors.New("open /etc/secret/cronlatch.yaml: permission denied"))
	w := g.ask(http.MethodPost, reloadPath, "", asAdmin()...)
	g.refused(w, http.StatusServiceUnavailable, "unreadable")
	assert.NotContains(t, w.Body.String(), "secret", "paths are for the log")
	assert.Len(t, g.log.All(), 1)
}

// driveReload brings the answers that only a reload has.
func driveReload(g *rig) {
	for _, err := range []error{
		&httpapi.RejectedError{Errors: []httpapi.ConfigError{{Field: "cronlatch.yaml", Line: 1, Column: 1, Code: "syntax", Message: "x"}}},
		&httpapi.RejectedError{Restart: true, Errors: []httpapi.ConfigError{{Field: "listen", Code: "restart", Message: "x"}}},
		&httpapi.NotReadyError{Code: "draining", Reason: "x"},
		errors.New("no such file"),
	} {
		answers := g.on(func(o *httpapi.Options) {
			o.Reload = func(context.Context, string) (httpapi.Reloaded, error) { return httpapi.Reloaded{}, err }
		})
		answers.ask(http.MethodPost, reloadPath, "", asAdmin()...)
	}
	panics := g.on(func(o *httpapi.Options) {
		o.Reload = func(context.Context, string) (httpapi.Reloaded, error) { panic("secret") }
	})
	panics.ask(http.MethodPost, reloadPath, "", asAdmin()...)
}
