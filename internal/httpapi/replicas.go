package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/cronlatch/cronlatch/internal/audit"
	"github.com/cronlatch/cronlatch/internal/wire"
	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/locking"
	"github.com/cronlatch/cronlatch/scheduler"
)

// replicaRoutes are about the replicas.
func replicaRoutes() []route {
	return []route{
		{http.MethodGet, "/replicas", accessRead, "listReplicas", listReplicas},
		{http.MethodPost, "/replicas/{replica}/drain", accessAdmin, "drainReplica", drainReplica},
		{http.MethodPost, "/replicas/{replica}/undrain", accessAdmin, "undrainReplica", undrainReplica},
	}
}

func listReplicas(c *call) error {
	if err := c.noQuery(); err != nil {
		return err
	}
	var rows []scheduler.ReplicaRow
	err := c.runs(func(ctx context.Context, _ *jobs.Ledger) (err error) {
		rows, err = scheduler.Replicas(ctx, c.o.Fleet.DB, scheduler.HeardOf)
		return err
	})
	if err != nil {
		return err
	}
	return c.writeReplicas(rows)
}

func (c *call) writeReplicas(rows []scheduler.ReplicaRow) error {
	writeJSON(c.w, "application/json", http.StatusOK, wire.ReplicaList{Replicas: wire.ReplicasOf(rows, c.o.Fleet.TTL)})
	return nil
}

// drainReplica answers with the replicas of the name: mostly one. They may not have noticed yet; Draining says when they have.
func drainReplica(c *call) error { return c.drain(false, "reason") }

func undrainReplica(c *call) error { return c.drain(true) }

func (c *call) drain(undrain bool, known ...string) error {
	if err := c.noQuery(); err != nil {
		return err
	}
	given, err := c.body(known...)
	if err != nil {
		return err
	}
	f := &fields{given: given}
	r := scheduler.DrainRequest{
		Replica: c.segment("replica"), Undrain: undrain, By: c.actor(), Reason: f.optional("reason", locking.MaxReasonBytes),
	}
	if err := f.problem(); err != nil {
		return err
	}
	ctx, cancel := c.writing()
	defer cancel()
	err = c.checked(ctx)
	var rows []scheduler.ReplicaRow
	if err == nil {
		rows, err = scheduler.RequestDrain(ctx, c.o.Fleet.DB, r)
	}
	answer := c.drainFailed(err)
	c.auditDrain(r, answer)
	if answer != nil {
		return answer
	}
	if c.o.Fleet.Wake != nil {
		c.o.Fleet.Wake()
	}
	return c.writeReplicas(rows)
}

// drainFailed turns what went wrong into an answer; nil stays nil.
func (c *call) drainFailed(err error) error {
	if missing, ok := errors.AsType[*scheduler.NoReplicaError](err); ok {
		name := shortened(missing.Name)
		return &problem{
			Status: http.StatusNotFound, Code: "not_found",
			Detail: fmt.Sprintf("there is no replica %q%s", name, suggestion(name, missing.There)),
		}
	}
	return c.runFailed(err)
}

// auditDrain leaves a line about the request; the replica leaves another one when it obeys. The name in the path is what the
// line is about, and Replica is who writes it.
func (c *call) auditDrain(r scheduler.DrainRequest, answer error) {
	action := audit.ReplicaDrain
	if r.Undrain {
		action = audit.ReplicaUndrain
	}
	fields := append(c.auditFields(), audit.Operation(c.route.operation), audit.Target(r.Replica))
	if r.Reason != "" {
		fields = append(fields, audit.Reason(r.Reason))
	}
	audit.Log(c.audit, action, actionOutcome(answer), fields...)
}
