package httpapi_test

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/auth"
	"github.com/cronlatch/cronlatch/internal/httpapi"
	"github.com/cronlatch/cronlatch/locking"
)

//nolint:gochecknoglobals // flags of a test binary are global
var update = flag.Bool("update", false, "write testdata/routes.txt anew")

func listAll() locking.ListFilter { return locking.ListFilter{Limit: locking.MaxList} }

// roles are the columns of the table; a locker twice, for a name of its own and for another one.
func roles() []string {
	return []string{"none", "viewer", "locker", "locker elsewhere", "operator", "admin"}
}

// tried sends the request and says whether the caller was let through.
func (g *rig) tried(r httpapi.RouteInfo, role string) bool {
	g.Helper()
	name, headers := "team/x", []string(nil)
	if role == "locker elsewhere" {
		role, name = "locker", "elsewhere"
	}
	if role != "none" {
		headers = []string{"Authorization", "Bearer " + role}
	}
	op := operation{id: r.Operation}
	op.path = r.Path
	w := g.ask(r.Method, pathOf(op, strings.ReplaceAll(name, "/", "%2F")), goodBody(op), headers...)
	return w.Code != http.StatusUnauthorized && w.Code != http.StatusForbidden
}

// The table of routes and roles is what the server does: each line and column is a request. A new route changes the
// file, and somebody has to look at it.
func TestRoutesAndRoles(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	fleet := withFleet(t)
	fmt.Fprintf(&b, "%-6s %-32s %-19s %s\n", "method", "path", "operation", strings.Join(roles(), " | "))
	for _, r := range httpapi.RouteTable() {
		var columns []string
		for _, role := range roles() {
			mark := "-"
			if newRig(t, func(o *httpapi.Options) { withAuth(o); fleet(o) }).tried(r, role) {
				mark = "yes"
			}
			columns = append(columns, fmt.Sprintf("%-*s", len(role), mark))
		}
		fmt.Fprintln(&b, strings.TrimRight(fmt.Sprintf("%-6s %-32s %-19s %s", r.Method, r.Path, r.Operation, strings.Join(columns, " | ")), " "))
	}
	if *update {
		require.NoError(t, os.WriteFile("testdata/routes.txt", []byte(b.String()), 0o600))
	}
	golden, err := os.ReadFile("testdata/routes.txt")
	require.NoError(t, err)
	assert.Equal(t, string(golden), b.String(), "testdata/routes.txt has who may do what; change it on purpose")
}

// The roles in the OpenAPI document are the table's.
func TestDocumentedRolesAreTheTables(t *testing.T) {
	t.Parallel()
	documented := map[string][]string{}
	for _, op := range newSpec(t).operations(t) {
		documented[op.id] = op.roles
		assert.Equal(t, op.public, slices.Equal(op.roles, []string{"public"}), op.id)
	}
	for _, r := range httpapi.RouteTable() {
		var want []string
		for _, role := range []auth.Role{auth.Viewer, auth.Locker, auth.Operator, auth.Admin} {
			if r.Allows(auth.Principal{Role: role}, "x") {
				want = append(want, string(role))
			}
		}
		if r.Public {
			want = []string{"public"}
		}
		assert.Equal(t, want, documented[r.Operation], r.Operation)
		assert.Equal(t, r.Public, r.Allows(auth.Principal{}, ""), "without a role there is nothing: %s", r.Operation)
	}
}

func TestAuthentication(t *testing.T) {
	t.Parallel()
	g := newRig(t, withAuth)
	for _, header := range []string{"", "Bearer", "Bearer ", "Basic YTpi", "admin", "Bearer wrong", "Token admin", "Beareradmin", "Bearer admin ", "Bearer " + strings.Repeat("x", 600)} {
		w := g.ask(http.MethodGet, "/locks", "", "Authorization", header)
		g.refused(w, http.StatusUnauthorized, "unauthenticated")
		assert.True(t, strings.HasPrefix(w.Header().Get("WWW-Authenticate"), "Bearer"))
	}
	for _, header := range []string{"Bearer admin", "bearer admin", "BEARER  admin"} {
		assert.Equal(t, http.StatusOK, g.ask(http.MethodGet, "/locks", "", "Authorization", header).Code, header)
	}
	g.refused(g.ask(http.MethodGet, "/locks?access_token=admin", ""), http.StatusUnauthorized, "unauthenticated")
	r := request(t, http.MethodGet, "/locks")
	r.Header["Authorization"] = []string{"Bearer admin", "Bearer admin"}
	g.refused(g.send(r), http.StatusUnauthorized, "unauthenticated")

	for _, token := range []string{"unavailable", "broken"} {
		w := g.ask(http.MethodGet, "/locks", "", "Authorization", "Bearer "+token)
		p := g.refused(w, http.StatusServiceUnavailable, "database")
		assert.NotContains(t, fmt.Sprint(p), "secret")
	}
	for _, public := range []string{"/healthz", "/readyz"} {
		assert.Equal(t, http.StatusOK, g.ask(http.MethodGet, public, "", "Authorization", "Bearer wrong").Code)
		g.refused(g.ask(http.MethodPost, public, ""), http.StatusMethodNotAllowed, "method")
	}
}

// Who is not known learns nothing about what there is: path, method, body, content type come after.
func TestAuthenticationComesFirst(t *testing.T) {
	t.Parallel()
	g := newRig(t, withAuth)
	for _, at := range []string{"/nothing", "/locks//x", "/locks/%2e%2e", "/locks/x", "/locks/x/other", "/openapi.json"} {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut, "BREW"} {
			g.refused(g.ask(method, at, "{", "Content-Type", "text/plain"), http.StatusUnauthorized, "unauthenticated")
		}
	}
	viewer := []string{"Authorization", "Bearer viewer"}
	g.refused(g.ask(http.MethodPost, path("x"), "{", append(viewer, "Content-Type", "text/plain")...), http.StatusForbidden, "forbidden")
	g.refused(g.ask(http.MethodPut, path("x"), "{", viewer...), http.StatusMethodNotAllowed, "method")
	g.refused(g.ask(http.MethodPut, "/nothing", "{", viewer...), http.StatusNotFound, "no_route")
	locker := []string{"Authorization", "Bearer locker"}
	g.refused(g.ask(http.MethodPost, "/locks/%2e%2e", goodAcquire, locker...), http.StatusForbidden, "forbidden")
	g.refused(g.ask(http.MethodPost, "/locks/team%2F%00", goodAcquire, locker...), http.StatusUnprocessableEntity, "invalid")
}

// A prefix is a prefix of the name, byte by byte, however the path spells it.
func TestPrefixes(t *testing.T) {
	t.Parallel()
	g := newRig(t, withAuth)
	locker := []string{"Authorization", "Bearer locker"}
	for at, ok := range map[string]bool{
		"/locks/team%2Fa": true, "/locks/team%2f": true, "/locks/%74eam%2Fa": true, "/locks/team%2F..%2Fother": true,
		"/locks/team": false, "/locks/Team%2Fa": false, "/locks/%20team%2Fa": false, "/locks/teams": false, "/locks/a%2Fteam%2F": false,
	} {
		w := g.ask(http.MethodPost, at, goodAcquire, locker...)
		if ok {
			assert.Equal(t, http.StatusOK, w.Code, at)
			continue
		}
		g.refused(w, http.StatusForbidden, "forbidden")
	}
}

// A lock is its principal's: the owner's text alone opens nothing.
func TestALockIsItsPrincipals(t *testing.T) {
	t.Parallel()
	g := newRig(t, withAuth)
	one, two, admin := []string{"Authorization", "Bearer locker"}, []string{"Authorization", "Bearer locker2"}, []string{"Authorization", "Bearer admin"}
	a := g.mustAcquire("team/x", "A", one...)
	for _, other := range [][]string{two, admin} {
		assert.False(t, g.acquire("team/x", "A", other...).Acquired)
		g.refused(g.ask(http.MethodPost, path("team/x", "/renew"), `{"owner": "A", "ttl_seconds": 60}`, other...), http.StatusConflict, "not_renewable")
		g.refused(g.ask(http.MethodDelete, path("team/x"), `{"owner": "A"}`, other...), http.StatusForbidden, "not_owner")
	}
	body := fmt.Sprintf(`{"fencing_token": %d, "reason": "stuck", "immediate": true}`, a.FencingToken)
	g.refused(g.ask(http.MethodPost, path("team/x", "/force-release"), body, one...), http.StatusForbidden, "forbidden")
	require.Equal(t, http.StatusNoContent, g.ask(http.MethodPost, path("team/x", "/force-release"), body, admin...).Code)
	g.mustAcquire("team/x", "A", two...)
}

func TestMethods(t *testing.T) {
	t.Parallel()
	g := newRig(t, nil)
	for at, want := range map[string]string{
		"/locks": "GET, HEAD", "/locks/x": "DELETE, GET, HEAD, POST", "/locks/x/renew": "POST", "/locks/x/force-release": "POST",
		"/healthz": "GET, HEAD", "/readyz": "GET, HEAD", "/openapi.json": "GET, HEAD", reloadPath: "POST",
	} {
		for _, method := range []string{http.MethodPut, http.MethodPatch, http.MethodOptions, http.MethodTrace, http.MethodConnect, "BREW", "get"} {
			w := g.ask(method, at, "")
			p := g.refused(w, http.StatusMethodNotAllowed, "method")
			assert.Equal(t, want, w.Header().Get("Allow"), at)
			assert.Contains(t, p["detail"], want)
		}
	}
	g.refused(g.ask(http.MethodGet, "/locks/x/renew", ""), http.StatusMethodNotAllowed, "method")
	g.refused(g.ask(http.MethodPost, "/locks", goodAcquire), http.StatusMethodNotAllowed, "method")
}

// A page of another site may not write, whatever it sends; tools and pages of this origin may.
func TestCrossSiteWrites(t *testing.T) {
	t.Parallel()
	g := newRig(t, nil)
	for _, c := range []struct {
		header, value string
		ok            bool
	}{
		{"Sec-Fetch-Site", "cross-site", false},
		{"Sec-Fetch-Site", "same-site", false},
		{"Origin", "https://evil.example", false},
		{"Origin", "null", false},
		{"Sec-Fetch-Site", "same-origin", true},
		{"Sec-Fetch-Site", "none", true},
		{"Origin", "http://127.0.0.1:8420", true},
	} {
		for method, at := range map[string]string{http.MethodPost: path("x"), http.MethodDelete: path("x")} {
			w := g.ask(method, at, map[string]string{http.MethodPost: goodAcquire, http.MethodDelete: `{"owner": "A"}`}[method], c.header, c.value)
			if c.ok {
				assert.NotEqual(t, http.StatusForbidden, w.Code, c.value)
				continue
			}
			g.refused(w, http.StatusForbidden, "cross_site")
		}
		assert.NotEqual(t, http.StatusForbidden, g.ask(http.MethodGet, "/locks", "", c.header, c.value).Code)
	}
}

// A route without a line in the table is refused: access has no value that lets in by accident.
func TestTheZeroAccessLetsNobodyIn(t *testing.T) {
	t.Parallel()
	for _, role := range []auth.Role{"", auth.Viewer, auth.Locker, auth.Operator, auth.Admin, "root"} {
		assert.False(t, httpapi.ZeroAccess(auth.Principal{ID: "x", Role: role}, "x"))
	}
}
