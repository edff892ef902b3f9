package httpapi

import (
	"context"
	"errors"
	"net/http"

	"go.uber.org/zap"
)

// reloadPath is no path of a resource: it acts on the process.
const reloadPath = "/-/reload"

// Reloaded is what reading the configuration again has changed: names of jobs, sorted.
type Reloaded struct {
	Added   []string `json:"added"`
	Removed []string `json:"removed"`
	Changed []string `json:"changed"`
	Jobs    int      `json:"jobs"`        // how many there are now
	Hash    string   `json:"definitions"` // equal on replicas that agree on everything that runs
}

// ConfigError is one thing that is wrong with a configuration. Line and Column are 0 for what is not in the file.
type ConfigError struct {
	Field   string `json:"field"` // the file's name without its directory, a variable, a flag, or the key
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

// RejectedError is a configuration that was not taken; the old one stays.
type RejectedError struct {
	// Restart says that the content is right, but that the daemon must be restarted for the keys in Errors.
	Restart bool
	Errors  []ConfigError // never empty
}

func (e *RejectedError) Error() string {
	return "the configuration was rejected: " + e.Errors[0].Message
}

// rejectionError is a problem whose errors have a position.
type rejectionError struct {
	problem

	Errors []ConfigError `json:"errors"`
}

// reload answers with what has changed. It waits for no running job, and not for the database.
func reload(c *call) error {
	if err := c.noQuery(); err != nil {
		return err
	}
	done, err := c.o.Reload(context.WithoutCancel(c.r.Context()), c.actor())
	c.noteReload(done, err)
	if err == nil {
		writeJSON(c.w, "application/json", http.StatusOK, done.orEmpty())
		return nil
	}
	if rejected, ok := errors.AsType[*RejectedError](err); ok {
		c.reject(rejected)
		return nil
	}
	if notNow, ok := errors.AsType[*NotReadyError](err); ok {
		return unavailable(problem{Code: notNow.Code, Detail: notNow.Reason})
	}
	c.log.Warn("the configuration could not be read", zap.String("request.id", idOf(c.r)), zap.Error(err))
	return unavailable(problem{Code: "unreadable", Detail: "the configuration could not be read; the log has the details under the request id"})
}

// orEmpty has lists that are lists in JSON, too.
func (r Reloaded) orEmpty() Reloaded {
	for _, list := range []*[]string{&r.Added, &r.Removed, &r.Changed} {
		if *list == nil {
			*list = []string{}
		}
	}
	return r
}

func (c *call) reject(e *RejectedError) {
	p := rejectionError{problem{
		Type: "about:blank", Status: http.StatusUnprocessableEntity, Code: "config", RequestID: idOf(c.r),
		Detail: "the configuration has errors; nothing was changed",
	}, e.Errors}
	if e.Restart {
		p.Status, p.Code = http.StatusConflict, "restart"
		p.Detail = "only a restart can change the keys in errors; nothing was changed"
	}
	p.Title = http.StatusText(p.Status)
	writeJSON(c.w, "application/problem+json", p.Status, p)
}
