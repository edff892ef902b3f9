package httpapi

import "github.com/cronlatch/cronlatch/internal/auth"

// RouteInfo is one line of the table of routes.
type RouteInfo struct {
	Method, Path, Operation string
	Public                  bool
	Allows                  func(p auth.Principal, resource string) bool
}

// RouteTable is the table of routes.
func RouteTable() []RouteInfo {
	var all []RouteInfo
	for _, r := range routes() {
		all = append(all, RouteInfo{r.method, r.path, r.operation, r.access == accessPublic, r.access.allows})
	}
	return all
}

// ZeroAccess is what a route allows whose access was forgotten.
func ZeroAccess(p auth.Principal, resource string) bool { return accessNobody.allows(p, resource) }
