package httpapi

import (
	"fmt"
	"net/http"
	"time"

	"github.com/cronlatch/cronlatch/internal/runexport"
)

// exportWithin is how long a client may take to read one page of an export.
const exportWithin = 30 * time.Second

// exportRuns streams all runs of a filter, page by page. When the database goes away in the middle, the connection is cut: an
// answer that ends well is whole.
func exportRuns(c *call) error {
	given, err := c.query("filter", "format")
	if err != nil {
		return err
	}
	var f fields
	want, format := c.runFilter(&f, given.Get("filter")), runexport.CSV
	if given.Has("format") {
		format = runexport.Format(given.Get("format"))
	}
	if format != runexport.CSV && format != runexport.NDJSON {
		f.add("format", "invalid", "must be %q or %q", runexport.CSV, runexport.NDJSON)
	}
	if err := f.problem(); err != nil {
		return err
	}
	want.Limit = maxRuns
	page, err := c.runPage(want)
	if err != nil {
		return err
	}
	h := c.w.Header()
	h.Set("Content-Type", format.ContentType())
	h.Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", "runs."+string(format)))
	c.w.WriteHeader(http.StatusOK)
	control, out := http.NewResponseController(c.w), runexport.New(c.w, format)
	for {
		_ = control.SetWriteDeadline(time.Now().Add(exportWithin)) // a writer without deadlines has none to be moved
		if err := out.Write(page.Runs); err != nil {
			return nil //nolint:nilerr // the client went away, and there is nobody to tell
		}
		if page.NextCursor == "" {
			return nil
		}
		want.After = f.runCursor(page.NextCursor)
		if page, err = c.runPage(want); err != nil {
			panic(http.ErrAbortHandler)
		}
	}
}
