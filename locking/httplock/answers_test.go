package httplock_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/locking"
	"github.com/cronlatch/cronlatch/locking/httplock"
)

// answering gives every request one answer.
func answering(status int, contentType, body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body) // a client that has seen enough closes
	})
}

const (
	plainJSON   = "application/json"
	problemJSON = "application/problem+json"
	aLock       = `{"resource":"a","owner":"A","fencing_token":7,"acquired_at":"2026-05-01T12:00:00.123456Z",` +
		`"expires_at":"2026-05-01T14:00:30.5+02:00","remaining_ms":29500,"metadata":{"z": 1.50}}`
)

// calls are the methods of a store for the resource a and the owner A, each with what it answered.
func calls(ctx context.Context, s locking.Store) map[string]error {
	claim := []locking.Claim{{Resource: "a", Owner: "A", FencingToken: 7, TTL: 30 * time.Second}}
	_, acquired := s.Acquire(ctx, []locking.AcquireRequest{{Resource: "a", Owner: "A", TTL: 30 * time.Second}})
	_, renewed := s.Renew(ctx, claim)
	_, released := s.Release(ctx, claim)
	_, got := s.Get(ctx, "a")
	_, listed := s.List(ctx, locking.ListFilter{})
	_, forced := s.ForceRelease(ctx, locking.Force{Resource: "a", FencingToken: 7, Reason: "stuck"})
	return map[string]error{
		"acquire": acquired, "renew": renewed, "release": released, "get": got, "list": listed, "force": forced,
	}
}

// "Lost is only said by the clock or by the database's answer": whatever else comes back says nothing about the lock.
func TestOddAnswersAreUnknown(t *testing.T) {
	t.Parallel()
	for name, h := range map[string]http.Handler{
		"a proxy's page":               answering(http.StatusOK, "text/html", "<html>log in here</html>"),
		"a proxy's 404":                answering(http.StatusNotFound, "text/html", "<html>no such page</html>"),
		"a bare 409":                   answering(http.StatusConflict, "text/plain", "conflict"),
		"a bare 422":                   answering(http.StatusUnprocessableEntity, "text/plain", "no"),
		"a problem of another program": answering(http.StatusConflict, problemJSON, `{"code":"lost"}`),
		"a 404 of another program":     answering(http.StatusNotFound, problemJSON, `{"code":"nothing"}`),
		"a code with another status":   answering(http.StatusBadGateway, problemJSON, `{"code":"not_renewable"}`),
		"a problem that is cut":        answering(http.StatusConflict, problemJSON, `{"code":"not_renew`),
		"a redirect":                   http.RedirectHandler("/elsewhere", http.StatusTemporaryRedirect),
		"the database is away":         answering(http.StatusServiceUnavailable, problemJSON, `{"code":"database","detail":"away"}`),
		"too many requests":            answering(http.StatusTooManyRequests, problemJSON, `{"code":"busy"}`),
		"nothing":                      answering(http.StatusOK, plainJSON, ""),
		"half of it":                   answering(http.StatusOK, plainJSON, aLock[:60]),
		"an empty object":              answering(http.StatusOK, plainJSON, "{}"),
		"a list":                       answering(http.StatusOK, plainJSON, "[]"),
		"null":                         answering(http.StatusOK, plainJSON, "null"),
		"something behind it":          answering(http.StatusOK, plainJSON, aLock+aLock),
		"without end":                  answering(http.StatusOK, plainJSON, `{"metadata":"`+strings.Repeat("x", 4<<20)+`"}`),
		"another status of success":    answering(http.StatusAccepted, plainJSON, aLock),
		"a connection that breaks": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			w.WriteHeader(http.StatusOK)
			panic(http.ErrAbortHandler)
		}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for call, err := range calls(t.Context(), serve(t, h, as("cl_ci_secret"))) {
				require.Error(t, err, call)
				for _, fact := range []error{
					locking.ErrLost, locking.ErrHeld, locking.ErrNotFound, locking.ErrNotOwner, locking.ErrStaleToken,
					locking.ErrInvalid, httplock.ErrDenied,
				} {
					require.NotErrorIs(t, err, fact, call)
				}
				assert.NotContains(t, err.Error(), "cl_ci_secret", call)
			}
		})
	}
}

func TestAnswersAboutAnotherLockAreUnknown(t *testing.T) {
	t.Parallel()
	grant := func(lock string) string { return `{"acquired":true,"lock":` + lock + `}` }
	change := func(old, with string) string { return strings.Replace(aLock, old, with, 1) }
	require.NoError(t, calls(t.Context(), serve(t, answering(http.StatusOK, plainJSON, grant(aLock))))["acquire"])
	right := serve(t, answering(http.StatusOK, plainJSON, aLock))
	require.NoError(t, calls(t.Context(), right)["renew"])
	require.NoError(t, calls(t.Context(), right)["get"])
	for name, lock := range map[string]string{
		"another resource":    change(`"a"`, `"b"`),
		"another owner":       change(`"A"`, `"B"`),
		"no token":            change(`"fencing_token":7,`, ``),
		"a token of 0":        change(`:7`, `:0`),
		"a token of 2^53":     change(`:7`, `:9007199254740992`),
		"a token in a string": change(`:7`, `:"7"`),
		"no expiry":           change(`"expires_at"`, `"x"`),
		"no remaining time":   change(`"remaining_ms"`, `"x"`),
		"a negative rest":     change(`29500`, `-1`),
		"a rest of years":     change(`29500`, `99999999999`),
		"a rest in a float":   change(`29500`, `29500.5`),
		"not a time":          change(`2026-05-01T12:00:00.123456Z`, `yesterday`),
	} {
		require.Error(t, calls(t.Context(), serve(t, answering(http.StatusOK, plainJSON, grant(lock))))["acquire"], name)
		require.Error(t, calls(t.Context(), serve(t, answering(http.StatusOK, plainJSON, lock)))["renew"], name)
	}
	for name, answer := range map[string]string{
		"a grant without a lock":      `{"acquired":true}`,
		"neither yes nor no":          `{"lock":` + aLock + `}`,
		"a refusal for another":       `{"acquired":false,"resource":"b"}`,
		"a refusal without a name":    `{"acquired":false}`,
		"a refusal with another type": `{"acquired":"false","resource":"a"}`,
	} {
		require.Error(t, calls(t.Context(), serve(t, answering(http.StatusOK, plainJSON, answer)))["acquire"], name)
	}
	other := serve(t, answering(http.StatusOK, plainJSON, change(`:7`, `:8`)))
	require.Error(t, calls(t.Context(), other)["renew"], "a renewal of token 7 that shows token 8")
}

// The client counts from what was left, never from the server's clock.
func TestRecordsCountFromTheRemainingTime(t *testing.T) {
	t.Parallel()
	r, err := serve(t, answering(http.StatusOK, plainJSON, aLock)).Get(t.Context(), "a")
	require.NoError(t, err)
	assert.Equal(t, 29500*time.Millisecond, r.Remaining())
	assert.Equal(t, time.Date(2026, 5, 1, 12, 0, 30, 5e8, time.UTC), r.ExpiresAt)
	assert.Equal(t, time.Date(2026, 5, 1, 12, 0, 0, 123456e3, time.UTC), r.AcquiredAt)
	assert.Equal(t, int64(7), r.FencingToken)
	assert.Equal(t, `{"z": 1.50}`, string(r.Metadata))
}

func TestARefusalTellsHowLongToWait(t *testing.T) {
	t.Parallel()
	const holder = `"holder":{"acquired_at":"2026-05-01T12:00:00Z","expires_at":"2026-05-01T12:00:30Z","metadata":{"host":"web-1"}}`
	for answer, want := range map[string]time.Duration{
		`"retry_after_seconds":12,` + holder:                   12 * time.Second,
		`"retry_after_seconds":0,` + holder:                    time.Second,
		`"retry_after_seconds":-9223372036854775808,` + holder: time.Second,
		`"retry_after_seconds":9223372036854775807,` + holder:  48*time.Hour + time.Second,
		holder:                                  time.Second,
		`"retry_after_seconds":1`:               0,
		`"retry_after_seconds":1,"holder":null`: 0,
	} {
		c := serve(t, answering(http.StatusOK, plainJSON, `{"acquired":false,"resource":"a",`+answer+`}`))
		res, err := c.Acquire(t.Context(), []locking.AcquireRequest{{Resource: "a", Owner: "A", TTL: time.Second}})
		require.NoError(t, err, answer)
		assert.False(t, res[0].Acquired)
		assert.Equal(t, want, res[0].Record.Remaining(), answer)
		assert.Equal(t, "a", res[0].Record.Resource)
		if want > 0 {
			assert.JSONEq(t, `{"host":"web-1"}`, string(res[0].Record.Metadata))
		}
	}
}

func TestProblemsAreShown(t *testing.T) {
	t.Parallel()
	err := calls(t.Context(), serve(t, answering(http.StatusUnprocessableEntity, problemJSON,
		`{"code":"invalid","detail":"the fields are wrong","request_id":"R1","errors":[{"field":"owner","message":"is blank"}]}`)))["acquire"]
	require.ErrorIs(t, err, locking.ErrInvalid)
	require.EqualError(t, err, `httplock: acquire "a": the server answered 422 (invalid): the fields are wrong; owner: is blank [request R1]`)
	var status *httplock.StatusError
	require.ErrorAs(t, err, &status)
	assert.Equal(t, http.StatusUnprocessableEntity, status.Status)
	assert.Equal(t, "invalid", status.Code)
	err = calls(t.Context(), serve(t, answering(http.StatusBadGateway, "text/html", "<html>")))["get"]
	require.EqualError(t, err, `httplock: get "a": the server answered 502 without saying why; is it cronlatch?`)
}

// One claim of a batch that is not answered does not spoil what is known about the others.
func TestABatchKeepsWhatIsKnown(t *testing.T) {
	t.Parallel()
	c := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.Contains(r.URL.Path, "/broken"):
			answering(http.StatusServiceUnavailable, problemJSON, `{"code":"database"}`).ServeHTTP(w, r)
		case strings.Contains(r.URL.Path, "/gone"):
			answering(http.StatusConflict, problemJSON, `{"code":"not_renewable"}`).ServeHTTP(w, r)
		default:
			name := strings.Split(r.URL.Path, "/")[2]
			answering(http.StatusOK, plainJSON, strings.Replace(aLock, `"a"`, `"`+name+`"`, 1)).ServeHTTP(w, r)
		}
	}))
	var claims []locking.Claim
	for i := range 40 {
		claims = append(claims, locking.Claim{Resource: fmt.Sprint([]string{"fine", "gone", "broken"}[i%3], i), Owner: "A", TTL: time.Second})
	}
	res, err := c.Renew(t.Context(), claims)
	require.NoError(t, err)
	for i := range res {
		switch i % 3 {
		case 0:
			require.NoError(t, res[i].Err)
			assert.Equal(t, claims[i].Resource, res[i].Record.Resource)
		case 1:
			assert.Equal(t, locking.ErrLost, res[i].Err)
		case 2:
			require.ErrorIs(t, res[i].Err, locking.ErrUnknown)
			require.NotErrorIs(t, res[i].Err, locking.ErrLost)
		}
	}
	_, err = c.Renew(t.Context(), claims[2:3])
	require.Error(t, err, "nothing is known: an error of the call")
	reqs := []locking.AcquireRequest{{Resource: "fine", Owner: "A", TTL: time.Second}, {Resource: "broken", Owner: "A", TTL: time.Second}}
	_, err = c.Acquire(t.Context(), reqs)
	require.Error(t, err, "a result of an acquire has no error of its own")
}
