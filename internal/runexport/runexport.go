// Package runexport writes runs for other programs: CSV (RFC 4180, with a header, lines end in CRLF) and NDJSON (one object of
// the API on each line).
//
// A spreadsheet takes a cell that begins with =, +, -, @, a tab or a carriage return for a formula, and the name of a job, a
// reason or a parameter may begin like that. Such a cell gets a ' in front, which is what spreadsheets themselves write for a
// text. Programs that read the CSV have to take it away again; NDJSON has every text as it is.
package runexport

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/cronlatch/cronlatch/internal/wire"
)

// Format is a form of the export.
type Format string

// The formats.
const (
	CSV    Format = "csv"
	NDJSON Format = "ndjson"
)

// ContentType is the media type of the format.
func (f Format) ContentType() string {
	if f == CSV {
		return "text/csv; charset=utf-8; header=present"
	}
	return "application/x-ndjson"
}

// Writer writes runs page by page.
type Writer struct {
	format Format
	csv    *csv.Writer
	json   *json.Encoder
	begun  bool
}

// New returns a writer on w.
func New(w io.Writer, f Format) *Writer {
	out := &Writer{format: f, csv: csv.NewWriter(w), json: json.NewEncoder(w)}
	out.csv.UseCRLF = true
	return out
}

// Write writes a page; the first one, which may be empty, with the header of a CSV.
func (w *Writer) Write(runs []wire.Run) error {
	if w.format == NDJSON {
		for i := range runs {
			if err := w.json.Encode(&runs[i]); err != nil {
				return fmt.Errorf("writing runs: %w", err)
			}
		}
		return nil
	}
	if !w.begun {
		w.begun = true
		_ = w.csv.Write(header()) // an error stays until Flush
	}
	for i := range runs {
		_ = w.csv.Write(cells(&runs[i]))
	}
	w.csv.Flush()
	if err := w.csv.Error(); err != nil {
		return fmt.Errorf("writing runs: %w", err)
	}
	return nil
}

func header() []string {
	return []string{
		"id", "job", "occurrence", "scheduled_at", "attempt", "state", "outcome", "reason", "detail", "trigger", "replica", "resource",
		"fencing_token", "due_at", "started_at", "finished_at", "exit_code", "signal", "requested_by", "params",
	}
}

func cells(r *wire.Run) []string {
	params, _ := json.Marshal(r.Params) // a map of texts
	row := []string{
		strconv.FormatInt(r.ID, 10), r.Job, r.Occurrence, instant(&r.ScheduledAt), strconv.Itoa(r.Attempt), r.State, text(r.Outcome),
		text(r.Reason), string(r.Detail), r.Trigger, text(r.Replica), r.Resource, number(r.FencingToken), instant(&r.DueAt),
		instant(r.StartedAt), instant(r.FinishedAt), number(r.ExitCode), text(r.Signal), text(r.RequestedBy), string(params),
	}
	for i := range row {
		row[i] = harmless(row[i])
	}
	return row
}

// harmless keeps a spreadsheet from calculating with a text.
func harmless(cell string) string {
	if cell != "" && strings.ContainsRune("=+-@\t\r", rune(cell[0])) {
		return "'" + cell
	}
	return cell
}

func instant(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func number[T int | int64](n *T) string {
	if n == nil {
		return ""
	}
	return strconv.FormatInt(int64(*n), 10)
}
