package daemon

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/cronlatch/cronlatch/configs"
	"github.com/cronlatch/cronlatch/internal/audit"
	"github.com/cronlatch/cronlatch/internal/httpapi"
)

// apiReload is Reload as the API wants it.
func (d *Daemon) apiReload(_ context.Context, actor string) (httpapi.Reloaded, error) {
	r, err := d.Reload(Trigger{kind: audit.ActorUser, id: actor})
	if err != nil {
		return httpapi.Reloaded{}, apiError(err)
	}
	return httpapi.Reloaded(r), nil
}

// apiError keeps what a caller may see: positions and keys, and no path of this machine.
func apiError(err error) error {
	if bad, ok := errors.AsType[*configs.Errors](err); ok {
		rejected := &httpapi.RejectedError{}
		for _, p := range bad.Problems {
			rejected.Errors = append(rejected.Errors, httpapi.ConfigError{
				Field: filepath.Base(p.File), Line: p.Line, Column: p.Column, Code: p.Code, Message: p.Message,
			})
		}
		return rejected
	}
	if restart, ok := errors.AsType[*RestartError](err); ok {
		rejected := &httpapi.RejectedError{Restart: true}
		for _, key := range restart.Keys {
			rejected.Errors = append(rejected.Errors, httpapi.ConfigError{
				Field: key, Code: "restart", Message: "only a restart can change this key",
			})
		}
		return rejected
	}
	if errors.Is(err, ErrLeaving) {
		return &httpapi.NotReadyError{Code: stateDraining, Reason: "this replica is leaving", Err: err}
	}
	return err
}
