package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"github.com/cronlatch/cronlatch/internal/wire"
	"github.com/cronlatch/cronlatch/jobs"
)

// How much of a run's output one answer has, before base64.
const (
	outputLimit    = 64 << 10
	maxOutputLimit = 256 << 10
)

// outputRoutes are about what runs print.
func outputRoutes() []route {
	return []route{
		{http.MethodGet, "/runs/{id}/output", accessRead, "getRunOutput", getOutput},
		{http.MethodGet, "/runs/{id}/output/raw", accessRead, "getRunOutputRaw", getRawOutput},
	}
}

// getOutput answers with a piece of what a run has printed. Who asks again from next_offset on follows the run, at any replica.
func getOutput(c *call) error {
	given, err := c.query("offset", "limit")
	if err != nil {
		return err
	}
	var f fields
	id := f.number("id", c.r.PathValue("id"), 1, 0)
	var offset, limit int64 = 0, outputLimit
	if given.Has("offset") {
		offset = f.number("offset", given.Get("offset"), 0, 0)
	}
	if given.Has("limit") {
		limit = f.number("limit", given.Get("limit"), 1, maxOutputLimit)
	}
	if err := f.problem(); err != nil {
		return err
	}
	var part jobs.OutputPart
	err = c.runs(func(ctx context.Context, l *jobs.Ledger) (err error) {
		part, err = l.OutputSince(ctx, id, offset, int(limit))
		return err
	})
	if err != nil {
		return err
	}
	writeJSON(c.w, "application/json", http.StatusOK, outputOf(&part, offset))
	return nil
}

func outputOf(p *jobs.OutputPart, offset int64) wire.Output {
	out := wire.Output{
		RunID: p.Run.ID, Offset: offset, MissingBytes: p.At - offset, Data: p.Data, NextOffset: p.End(), TotalBytes: p.Total,
		State: string(p.Run.State), Ended: p.Ended, NextRunID: wire.OrNull(p.Next),
	}
	if out.Data == nil {
		out.Data = []byte{}
	}
	return out
}

// getRawOutput answers with all that is kept, as a file: a browser must not take it for a page of this origin.
func getRawOutput(c *call) error {
	if err := c.noQuery(); err != nil {
		return err
	}
	var f fields
	id := f.number("id", c.r.PathValue("id"), 1, 0)
	if err := f.problem(); err != nil {
		return err
	}
	var text []byte
	err := c.runs(func(ctx context.Context, l *jobs.Ledger) (err error) {
		text, _, err = l.Kept(ctx, id)
		return err
	})
	if err != nil {
		return err
	}
	h := c.w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", fmt.Sprintf("run-%d.log", id)))
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	c.w.WriteHeader(http.StatusOK)
	_, _ = c.w.Write(text) // the client went away, and there is nobody to tell
	return nil
}

// checked asks whether the database is the one that was opened.
func (c *call) checked(ctx context.Context) error {
	if c.o.Fleet.Check == nil {
		return nil
	}
	return c.o.Fleet.Check(ctx)
}

// number is a whole number as one text writes it: without a sign, spaces or zeros before it. most 0 is no limit.
func (f *fields) number(name, text string, least, most int64) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err == nil && n >= least && (most == 0 || n <= most) && text == strconv.FormatInt(n, 10) {
		return n
	}
	if most == 0 {
		f.add(name, "range", "must be a whole number, at least %d", least)
	} else {
		f.add(name, "range", "must be a whole number from %d to %d", least, most)
	}
	return 0
}
