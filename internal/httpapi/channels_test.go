package httpapi_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/httpapi"
	"github.com/cronlatch/cronlatch/internal/notify"
)

const channelPath = "/channels/ops%2Fnight/test"

// channelsThat is an API whose channels answer this.
func channelsThat(t *testing.T, answer error) (g *rig, asked *[]string) {
	t.Helper()
	asked = &[]string{}
	return newRig(t, func(o *httpapi.Options) {
		withAuth(o)
		o.TestChannel = func(_ context.Context, name, actor string) error {
			*asked = append(*asked, name+" "+actor)
			return answer
		}
	}), asked
}

func TestAChannelIsTested(t *testing.T) {
	t.Parallel()
	g, asked := channelsThat(t, nil)
	w := g.ask(http.MethodPost, channelPath, "", asAdmin()...)
	require.Equal(t, http.StatusOK, w.Code)
	assert.JSONEq(t, `{"channel": "ops/night"}`, w.Body.String())
	assert.Equal(t, []string{"ops/night root"}, *asked)
	line := g.audit.FilterMessage("channel test").All()
	require.Len(t, line, 1)
	assert.Equal(t, "success", line[0].ContextMap()["event.outcome"])

	g.refused(g.ask(http.MethodPost, channelPath+"?to=me", "", asAdmin()...), http.StatusBadRequest, "query")
	g.refused(g.ask(http.MethodPost, channelPath, "", "Authorization", "Bearer operator"), http.StatusForbidden, "forbidden")
	assert.Len(t, *asked, 1, "nothing else reached it")
}

func TestAChannelThatDoesNotAnswerIsAnAnswer(t *testing.T) {
	t.Parallel()
	g, _ := channelsThat(t, errors.New("the server answered 404"))
	p := g.refused(g.ask(http.MethodPost, channelPath, "", asAdmin()...), http.StatusBadGateway, "not_sent")
	assert.Equal(t, "the message was not sent: the server answered 404", p["detail"])
	assert.Equal(t, "failure", g.audit.FilterMessage("channel test").All()[0].ContextMap()["event.outcome"])

	g, _ = channelsThat(t, &notify.UnknownError{Name: "op", Known: []string{"ops"}})
	p = g.refused(g.ask(http.MethodPost, channelPath, "", asAdmin()...), http.StatusNotFound, "not_found")
	assert.Equal(t, `there is no channel "op"; the configuration has ops`, p["detail"])
}

func TestWithoutChannelsThereIsNoSuchRoute(t *testing.T) {
	t.Parallel()
	g := newRig(t, func(o *httpapi.Options) { o.TestChannel = nil })
	w := httptest.NewRecorder() // the document describes a daemon that has channels
	g.api.ServeHTTP(w, request(t, http.MethodPost, channelPath))
	g.refused(w, http.StatusNotFound, "no_route")
}

// driveChannels makes every answer of the route come that is its own.
func driveChannels(g *rig) {
	for _, err := range []error{errors.New("the server answered 500"), &notify.UnknownError{Name: "op"}} {
		answers := g.on(func(o *httpapi.Options) { o.TestChannel = func(context.Context, string, string) error { return err } })
		answers.ask(http.MethodPost, channelPath, "", asAdmin()...)
	}
	panics := g.on(func(o *httpapi.Options) {
		o.TestChannel = func(context.Context, string, string) error { panic("secret") }
	})
	panics.ask(http.MethodPost, channelPath, "", asAdmin()...)
}
