package lockingtest

import (
	"encoding/json"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/locking"
)

func principalCases() []testCase {
	return []testCase{
		{"the owner's text of another principal is another holder", foreignPrincipal},
		{"a takeover by the same owner of another principal has a higher token", principalTakesOver},
		{"metadata is shown as it was given", metadataAsGiven},
	}
}

func foreignPrincipal(f *fixture) {
	f.onlyOnTheTable("the server knows the principals")
	res := f.try(locking.AcquireRequest{Resource: "a", Owner: "A", Principal: "alice"})
	require.True(f, res.Acquired)
	a := res.Record
	assert.Equal(f, "alice", a.Principal)
	for _, principal := range []string{"", "bob", "Alice", "alice "} {
		other := f.try(locking.AcquireRequest{Resource: "a", Owner: "A", Principal: principal})
		assert.False(f, other.Acquired, principal)
		assert.Equal(f, a.FencingToken, other.Record.FencingToken)
		claim := locking.Claim{Resource: "a", Owner: "A", Principal: principal, FencingToken: a.FencingToken}
		_, err := f.renew(claim)
		require.ErrorIs(f, err, locking.ErrLost, principal)
		_, err = f.release(claim)
		require.ErrorIs(f, err, locking.ErrNotOwner, principal)
	}
	again := f.try(locking.AcquireRequest{Resource: "a", Owner: "A", Principal: "alice"})
	assert.True(f, again.Acquired && again.Extended)
	assert.Equal(f, a.FencingToken, again.Record.FencingToken)
	renewed, err := f.renew(locking.Claim{Resource: "a", Owner: "A", Principal: "alice"})
	require.NoError(f, err)
	assert.Equal(f, "alice", renewed.Principal)
	assert.Equal(f, "alice", f.mustGet("a").Principal)
	_, err = f.release(locking.Claim{Resource: "a", Owner: "A", Principal: "alice"})
	require.NoError(f, err)
}

func principalTakesOver(f *fixture) {
	f.onlyOnTheTable("the server knows the principals")
	a := f.try(locking.AcquireRequest{Resource: "a", Owner: "A", Principal: "alice"})
	f.expire("a")
	b := f.try(locking.AcquireRequest{Resource: "a", Owner: "A", Principal: "bob"})
	assert.True(f, b.Acquired && b.Takeover && !b.Extended)
	assert.Greater(f, b.Record.FencingToken, a.Record.FencingToken)
	assert.Equal(f, "bob", b.Record.Principal)
}

// Keys in their order, numbers in their form, a key twice: a holder's note is nobody else's to tidy.
func metadataAsGiven(f *fixture) {
	given := `{"z": 1.50, "a": [1e3, "\u00e9"], "z": null}`
	if f.remote() { // whose requests are strict JSON
		given = `{"z": 1.50, "a": [1e3, "\u00e9"], "b": null}`
	}
	res := f.try(locking.AcquireRequest{Resource: "a", Owner: "A", Metadata: json.RawMessage(given)})
	require.True(f, res.Acquired)
	for _, r := range []locking.Record{res.Record, f.mustGet("a"), f.mustBeBusy("a", "B")} {
		assert.Equal(f, given, string(r.Metadata))
	}
}
