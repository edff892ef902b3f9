package httpapi

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"go.uber.org/zap"
)

// healthz says that the process answers. It must stay free of everything that can wait.
func healthz(c *call) error {
	writeStatus(c.w, "ok")
	return nil
}

// readyz says whether the daemon may be given work.
func readyz(c *call) error {
	reason := c.check(c.r.Context())
	select {
	case <-c.r.Context().Done():
		return nil // the client went away: its impatience says nothing about the daemon
	default:
	}
	if c.state.changed(reason) {
		c.logReadiness(c.r, reason)
	}
	if reason != nil {
		return unavailable(problem{Code: reason.Code, Detail: reason.Reason})
	}
	writeStatus(c.w, "ready")
	return nil
}

// check asks within readyTimeout; nil is ready.
func (a *api) check(ctx context.Context) *NotReadyError {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	return asNotReady(a.o.Ready(ctx))
}

func asNotReady(err error) *NotReadyError {
	if err == nil {
		return nil
	}
	if known, ok := errors.AsType[*NotReadyError](err); ok {
		return known
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return &NotReadyError{Code: "timeout", Reason: "the check took too long", Err: err}
	}
	return &NotReadyError{Code: "not_ready", Reason: "a check went wrong; the log has the details under the request id", Err: err}
}

func (a *api) logReadiness(r *http.Request, reason *NotReadyError) {
	if reason == nil {
		a.log.Info("ready")
		return
	}
	a.log.Warn("not ready", zap.String("code", reason.Code), zap.String("reason", reason.Reason),
		zap.NamedError("error", reason.Err), zap.String("request.id", idOf(r)))
}

// readyState remembers the last answer, so that a probe every second is one line in the log and not 86,400 a day.
type readyState struct {
	mu   sync.Mutex
	last string
}

func (s *readyState) changed(reason *NotReadyError) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := ""
	if reason != nil {
		now = reason.Code
	}
	changed := now != s.last
	s.last = now
	return changed
}
