package httpapi

import (
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/cronlatch/cronlatch/locking"
)

// stamp keeps the databases' microseconds, always six digits of them.
const stamp = "2006-01-02T15:04:05.000000Z"

// appendLock writes a lock. By hand, because encoding/json would rewrite the metadata, which is shown as it was given.
func appendLock(b []byte, r *locking.Record) []byte {
	b = append(b, `{"resource":`...)
	b = appendText(b, r.Resource)
	b = append(b, `,"owner":`...)
	b = appendText(b, r.Owner)
	b = append(b, `,"fencing_token":`...)
	b = strconv.AppendInt(b, r.FencingToken, 10)
	b = append(b, `,"acquired_at":`...)
	b = appendTime(b, r.AcquiredAt)
	b = append(b, `,"expires_at":`...)
	b = appendTime(b, r.ExpiresAt)
	b = append(b, `,"remaining_ms":`...)
	b = strconv.AppendInt(b, r.Remaining().Milliseconds(), 10) // rounded down: a holder may believe too little
	b = append(b, `,"metadata":`...)
	return append(appendMetadata(b, r), '}')
}

// appendHolder writes what anybody who wants the lock may know of who has it: never the owner, which is the key.
func appendHolder(b []byte, r *locking.Record) []byte {
	b = append(b, `{"acquired_at":`...)
	b = appendTime(b, r.AcquiredAt)
	b = append(b, `,"expires_at":`...)
	b = appendTime(b, r.ExpiresAt)
	b = append(b, `,"metadata":`...)
	return append(appendMetadata(b, r), '}')
}

func appendText(b []byte, s string) []byte {
	// The error is about invalid UTF-8, which is written as U+FFFD; no store has any.
	b, _ = jsontext.AppendQuote(b, s)
	return b
}

func appendTime(b []byte, t time.Time) []byte {
	return t.UTC().AppendFormat(append(b, '"'), stamp+`"`)
}

func appendMetadata(b []byte, r *locking.Record) []byte {
	if len(r.Metadata) == 0 {
		return append(b, "{}"...)
	}
	return append(b, r.Metadata...)
}

// writeBody ignores the error of writing: the client went away, and there is nobody to tell.
func (c *call) writeBody(b []byte) error {
	c.w.Header().Set("Content-Type", "application/json")
	c.w.WriteHeader(http.StatusOK)
	_, _ = c.w.Write(append(b, '\n'))
	return nil
}
