package httpapi

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"

	"go.uber.org/zap"

	"github.com/cronlatch/cronlatch/internal/audit"
	"github.com/cronlatch/cronlatch/internal/auth"
)

// access is who may use a route. The zero value lets nobody in.
type access int

const (
	accessNobody  access = iota
	accessPublic         // without a token
	accessAny            // with any token
	accessView           // viewer, operator, admin; a locker for names of its own
	accessList           // as accessView; a locker is shown its own names only
	accessLock           // a locker for names of its own, and admin
	accessRead           // viewer, operator, admin
	accessOperate        // operator, admin
	accessAdmin
)

// allows answers for a principal and, where the route has one, a resource.
func (a access) allows(p auth.Principal, resource string) bool {
	switch a {
	case accessPublic:
		return true
	case accessAny:
		return p.Role == auth.Viewer || p.Role == auth.Locker || p.Role == auth.Operator || p.Role == auth.Admin
	case accessView:
		return p.Role == auth.Viewer || p.Role == auth.Operator || p.Covers(resource)
	case accessList:
		return accessAny.allows(p, resource)
	case accessLock:
		return p.Covers(resource)
	case accessRead:
		return p.Role == auth.Viewer || accessOperate.allows(p, resource)
	case accessOperate:
		return p.Role == auth.Operator || p.Role == auth.Admin
	case accessAdmin:
		return p.Role == auth.Admin
	default:
		return false
	}
}

// maxTokenBytes is more than any token has.
const maxTokenBytes = 512

// authenticate finds out who calls, from the one place where a token may be: the Authorization header.
func (c *call) authenticate(ctx context.Context) (auth.Principal, error) {
	if c.o.Auth == nil {
		return auth.Principal{Role: auth.Admin}, nil
	}
	token, ok := bearer(c.r.Header)
	if !ok {
		return auth.Principal{}, c.unauthenticated("no_token", "this needs a token: Authorization: Bearer cl_...")
	}
	who, err := c.o.Auth.Authenticate(ctx, token)
	switch {
	case err == nil:
		return who, nil
	case errors.Is(err, auth.ErrUnauthenticated):
		return auth.Principal{}, c.unauthenticated("bad_token", "the token is not known, has expired, or was revoked")
	default:
		if ctx.Err() == nil { // otherwise the client went away, and nobody reads this
			c.log.Warn("a token could not be checked", zap.String("request.id", idOf(c.r)), zap.Error(err))
		}
		return auth.Principal{}, unavailable(problem{Code: "database", Detail: "tokens cannot be checked now"})
	}
}

// bearer is the token of a request that has exactly one.
func bearer(h http.Header) (string, bool) {
	given := h.Values("Authorization")
	if len(given) != 1 {
		return "", false
	}
	scheme, token, _ := strings.Cut(given[0], " ")
	token = strings.TrimLeft(token, " ")
	return token, strings.EqualFold(scheme, "Bearer") && token != "" && len(token) <= maxTokenBytes
}

func (c *call) unauthenticated(reason, detail string) error {
	c.w.Header().Set("WWW-Authenticate", `Bearer realm="locks"`)
	c.deny(reason)
	return &problem{Status: http.StatusUnauthorized, Code: "unauthenticated", Detail: detail}
}

// forbidden does not say whether there is such a lock.
func (c *call) forbidden() error {
	c.deny("role")
	return &problem{Status: http.StatusForbidden, Code: "forbidden", Detail: "the token's role or prefix does not allow this"}
}

// sameSite refuses what a page of another site makes a browser send.
func (c *call) sameSite() error {
	if c.origin.Check(c.r) == nil {
		return nil
	}
	c.deny("cross_site")
	return &problem{Status: http.StatusForbidden, Code: "cross_site", Detail: "a page of another site may not do this"}
}

// deny leaves a line in the audit. It has the name in the path, but nothing of a token.
func (c *call) deny(reason string) {
	fields := append(c.auditFields(), audit.Reason(reason))
	if c.route != nil {
		fields = append(fields, audit.Operation(c.route.operation))
	}
	if name := c.resource(); name != "" {
		fields = append(fields, audit.Resource(name))
	}
	audit.Log(c.audit, audit.AuthDeny, audit.Failure, fields...)
}

// auditFields are what every line of the API has.
func (c *call) auditFields() []zap.Field {
	return []zap.Field{audit.Actor(audit.ActorUser, c.actor()), audit.Replica(c.o.Replica), audit.RequestID(idOf(c.r))}
}

// nobody is the actor of a call without a token, and no id of a token can be written like this.
const nobody = "(anonymous)"

// actor is who the audit says it was.
func (c *call) actor() string {
	if c.who.ID == "" {
		return cmp.Or(c.o.Actor, nobody)
	}
	return c.who.ID
}
