package httpapi

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"

	"go.uber.org/zap"

	"github.com/cronlatch/cronlatch/internal/auth"
)

// route is one line of the table from which everything is made: the mux, the answers 405 and 403, and the table of
// routes and roles.
type route struct {
	method    string // GET answers HEAD too
	path      string // a pattern of http.ServeMux
	access    access
	operation string // its operationId in the OpenAPI document
	handle    func(c *call) error
}

// routes is the whole API.
func routes() []route {
	return slices.Concat([]route{
		{http.MethodGet, "/healthz", accessPublic, "getHealth", healthz},
		{http.MethodGet, "/readyz", accessPublic, "getReadiness", readyz},
		{http.MethodGet, "/openapi.json", accessAny, "getOpenAPI", openAPI},
		{http.MethodPost, reloadPath, accessAdmin, "reloadConfiguration", reload},
		metricsRoute(), channelsRoute(),
	}, lockRoutes(), fleetRoutes())
}

// fleetRoutes exist when there is a Fleet.
func fleetRoutes() []route {
	return slices.Concat(jobRoutes(), runRoutes(), outputRoutes(), replicaRoutes(), auditRoutes(), explainRoutes())
}

// lockRoutes exist when there is a store.
func lockRoutes() []route {
	return []route{
		{http.MethodGet, "/locks", accessList, "listLocks", listLocks},
		{http.MethodGet, "/locks/{resource}", accessView, "getLock", getLock},
		{http.MethodPost, "/locks/{resource}", accessLock, "acquireLock", acquireLock},
		{http.MethodDelete, "/locks/{resource}", accessLock, "releaseLock", releaseLock},
		{http.MethodPost, "/locks/{resource}/renew", accessLock, "renewLock", renewLock},
		{http.MethodPost, "/locks/{resource}/force-release", accessAdmin, "forceReleaseLock", forceReleaseLock},
	}
}

// node answers for one path.
type node struct {
	*api

	methods map[string]*route // nil: there is nothing under the path
	public  bool
}

// call is one request on its way through a handler.
type call struct {
	*api

	w     http.ResponseWriter
	r     *http.Request
	who   auth.Principal
	route *route
}

// resource is the name in the path; "" when the route has none.
func (c *call) resource() string { return c.segment("resource") }

// fill fills the mux. Paths are all that the mux looks at: the methods of a path are the node's.
func (a *api) fill() {
	nodes := map[string]*node{}
	ofFleet := map[string]bool{}
	for _, rt := range fleetRoutes() {
		ofFleet[rt.path] = true
	}
	for _, rt := range routes() {
		if a.o.Fleet == nil && ofFleet[rt.path] {
			continue
		}
		if a.o.Locks == nil && strings.HasPrefix(rt.path, "/locks") || a.o.Reload == nil && rt.path == reloadPath {
			continue
		}
		if a.o.TestChannel == nil && rt.path == channelTestPath {
			continue
		}
		if a.o.Metrics == nil && rt.path == metricsPath {
			continue
		}
		n := nodes[rt.path]
		if n == nil {
			n = &node{api: a, methods: map[string]*route{}}
			nodes[rt.path] = n
			a.mux.Handle(rt.path, n)
		}
		n.methods[rt.method] = &rt
		n.public = n.public || rt.access == accessPublic
	}
	a.nowhere = &node{api: a}
	a.mux.Handle("/", a.nowhere)
}

// ServeHTTP is the one place where an error becomes an answer.
func (n *node) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &call{api: n.api, w: w, r: r}
	err := n.serve(r.Context(), c)
	if err == nil {
		return
	}
	p, ok := errors.AsType[*problem](err)
	if !ok {
		c.log.Error("a handler returned an error that is no answer", zap.String("request.id", idOf(r)), zap.Error(err))
		p = &problem{Status: http.StatusInternalServerError, Code: "internal", Detail: "the log has the details under the request id"}
	}
	writeProblem(w, r, *p)
}

// serve asks the questions in the order of the contract: who, whether, which method, which path.
func (n *node) serve(ctx context.Context, c *call) (err error) {
	c.route = n.methods[c.r.Method]
	if c.r.Method == http.MethodHead {
		c.route = n.methods[http.MethodGet]
	}
	if err := c.sameSite(); err != nil {
		return err
	}
	if !n.public {
		if c.who, err = c.authenticate(ctx); err != nil {
			return err
		}
	}
	switch {
	case n.methods == nil:
		return noRoute()
	case c.route == nil:
		return n.methodNotAllowed(c)
	case !c.route.access.allows(c.who, c.resource()):
		return c.forbidden()
	}
	return c.route.handle(c)
}

func (n *node) methodNotAllowed(c *call) error {
	allowed := slices.Collect(maps.Keys(n.methods))
	if n.methods[http.MethodGet] != nil {
		allowed = append(allowed, http.MethodHead)
	}
	slices.Sort(allowed)
	list := strings.Join(allowed, ", ")
	c.w.Header().Set("Allow", list)
	return &problem{Status: http.StatusMethodNotAllowed, Code: "method", Detail: "this path answers to " + list}
}
