package lockingtest

import (
	"github.com/stretchr/testify/assert"

	"github.com/cronlatch/cronlatch/locking"
)

// why is the reason of every force-release: some stores insist on one.
const why = "a test"

// remote reports whether the store asks a server.
func (f *fixture) remote() bool { return f.Behind != nil }

// table is the store that knows everything.
func (f *fixture) table() locking.Store {
	if f.remote() {
		return f.Behind
	}
	return f.Store
}

// onlyOnTheTable ends a test of what a server decides by itself.
func (f *fixture) onlyOnTheTable(because string) {
	f.Helper()
	if f.remote() {
		f.Skip("not asked of a remote store: " + because)
	}
}

// answer is what a store says about an acquire beside yes and no.
type answer string

const (
	plain     answer = "neither a takeover nor an extension"
	takeover  answer = "a takeover"
	extension answer = "an extension"
)

// is checks what kind of grant it was; a remote store claims nothing about it.
func (f *fixture) is(res locking.AcquireResult, want answer) {
	f.Helper()
	if f.remote() {
		want = plain
	}
	assert.Equal(f, want == takeover, res.Takeover, "must be %s", want)
	assert.Equal(f, want == extension, res.Extended, "must be %s", want)
}

// sameHolder compares a refusal's holder with its row. A remote store is not told the holder's owner, with which it could
// release the lock, nor its token.
func (f *fixture) sameHolder(row, got locking.Record) {
	f.Helper()
	if f.remote() {
		assert.True(f, got.Live(), "how long to wait is told")
		assert.LessOrEqual(f, got.Remaining(), ttl)
		row.Owner, row.FencingToken = "", 0
	}
	f.sameRow(row, got)
}
