package locking_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/cronlatch/cronlatch/locking"
)

// Only a new row can be over before its owner could know. When an extension expires on its way, what the owner held before
// is over as well, and the answer must say so: a second try would hide it behind a refusal.
func TestWhatExpiredInTheQueue(t *testing.T) {
	t.Parallel()
	now := time.Now()
	over := locking.Record{ID: 7, Now: now, ExpiresAt: now.Add(-time.Millisecond)}
	alive := locking.Record{ID: 7, Now: now, ExpiresAt: now.Add(time.Millisecond)}
	for name, c := range map[string]struct {
		row      locking.Record
		written  bool
		replaced string
		want     bool
	}{
		"a new row":                              {over, true, "", true},
		"a new row after the note about another": {over, true, "6 41 t", true},
		"a new row that lives":                   {alive, true, "", false},
		"an extension":                           {over, true, "7 42 f", false},
		"a takeover":                             {over, true, "7 41 t", false},
		"somebody else's row":                    {over, false, "", false},
	} {
		assert.Equal(t, c.want, locking.ExpiredInTheQueue(c.row, c.written, c.replaced), name)
	}
}
