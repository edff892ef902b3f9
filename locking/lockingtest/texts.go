package lockingtest

import (
	"encoding/json"
	"strings"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/locking"
)

func nameCases() []testCase {
	return []testCase{
		{"names and owners go through byte for byte", oddNames},
		{"what a database would rewrite is refused", refusedTexts},
		{"metadata comes back as it was given", metadata},
		{"metadata that is not an object is refused", refusedMetadata},
	}
}

// texts are what SQL, formats, JSON and drivers could take for their own.
func texts() []string {
	return []string{
		"100%", "it's", `say "hi"`, `back\slash`, `\'`, "what?", "?0", "?::text", "a ? b", "{}", "{a,b}", "a,b;c",
		"$1", "$$x$$", ":name", "--", "/* x */", "`tick`", "NULL", "null", "0", "-1", "1e9", "'; DROP TABLE x; --",
		"\U0001F512\U0001F511", "é", "e\u0301", "中文", "ﬁ", "A", "a", " leading", "trailing ", "\u00a0", "<&>",
		"\u2260", `\u0041`, `\x41`, "%s%d", strings.Repeat("x", 255), strings.Repeat("é", 127), "\U0010FFFD",
	}
}

func oddNames(f *fixture) {
	all := texts()
	owner := func(name string) string { return name + "!" }
	if f.remote() { // which takes spaces from an owner's ends
		owner = func(name string) string { return "<" + name + ">" }
	}
	reqs := make([]locking.AcquireRequest, len(all))
	for i, name := range all {
		reqs[i] = locking.AcquireRequest{Resource: name, Owner: owner(name), TTL: ttl}
	}
	got, err := f.Store.Acquire(f.ctx, reqs)
	require.NoError(f, err)
	claims := make([]locking.Claim, len(all))
	for i, name := range all {
		require.Truef(f, got[i].Acquired, "%q", name)
		assert.Equal(f, name, got[i].Record.Resource)
		assert.Equal(f, owner(name), got[i].Record.Owner)
		f.sameRow(got[i].Record, f.mustGet(name))
		assert.Equal(f, []string{name}, f.list(locking.ListFilter{Owner: owner(name)}))
		assert.Contains(f, f.list(locking.ListFilter{Prefix: name}), name)
		claims[i] = claimOf(got[i].Record)
	}
	for _, call := range []func() ([]locking.ClaimResult, error){
		func() ([]locking.ClaimResult, error) { return f.Store.Renew(f.ctx, claims) },
		func() ([]locking.ClaimResult, error) { return f.Store.Release(f.ctx, claims) },
	} {
		res, err := call()
		require.NoError(f, err)
		for i := range res {
			require.NoErrorf(f, res[i].Err, "%q", all[i])
		}
	}
}

func refusedTexts(f *fixture) {
	bad := []string{"", ".", "..", "a\x00b", "\xff", "a\xc3", "a\nb", "\x1b[0m", "zero\u200bwidth", strings.Repeat("x", 256)}
	for _, name := range bad {
		_, err := f.Store.Acquire(f.ctx, []locking.AcquireRequest{{Resource: name, Owner: "A", TTL: ttl}})
		require.ErrorIsf(f, err, locking.ErrInvalid, "acquire %q", name)
		_, err = f.Store.Renew(f.ctx, []locking.Claim{{Resource: name, Owner: "A", TTL: ttl}})
		require.ErrorIsf(f, err, locking.ErrInvalid, "renew %q", name)
		_, err = f.Store.Release(f.ctx, []locking.Claim{{Resource: name, Owner: "A"}})
		require.ErrorIsf(f, err, locking.ErrInvalid, "release %q", name)
		_, err = f.Store.Get(f.ctx, name)
		require.ErrorIsf(f, err, locking.ErrInvalid, "get %q", name)
		_, err = f.Store.ForceRelease(f.ctx, locking.Force{Resource: name, FencingToken: 1, Reason: why})
		require.ErrorIsf(f, err, locking.ErrInvalid, "force %q", name)
	}
	for _, owner := range []string{"", " \t", "a\x00b", "\xff", "a\nb", strings.Repeat("x", locking.MaxOwnerBytes+1)} {
		_, err := f.Store.Acquire(f.ctx, []locking.AcquireRequest{{Resource: "a", Owner: owner, TTL: ttl}})
		require.ErrorIsf(f, err, locking.ErrInvalid, "owner %q", owner)
		_, err = f.Store.Renew(f.ctx, []locking.Claim{{Resource: "a", Owner: owner, TTL: ttl}})
		require.ErrorIsf(f, err, locking.ErrInvalid, "owner %q", owner)
		_, err = f.Store.Release(f.ctx, []locking.Claim{{Resource: "a", Owner: owner}})
		require.ErrorIsf(f, err, locking.ErrInvalid, "owner %q", owner)
	}
}

func metadata(f *fixture) {
	for _, m := range []string{
		`{}`, `{"a":"?","b":"it's ?0","c":"100%"}`, `{"deep":{"list":[1,2.5,-3e10,true,null,"x"]}}`, `{"é":"\u00e9"}`,
		`{"quote":"\"","slash":"\\","tab":"\t","emoji":"\ud83d\udd12"}`, `{"u":"\\u0000"}`, `{"big":9007199254740993}`,
		`{"text":"` + strings.Repeat("y", locking.MaxMetadataBytes-12) + `"}`, " {\n\t\"spaced\" : 1 } ",
	} {
		res := f.try(locking.AcquireRequest{Resource: "a", Owner: "A", Metadata: json.RawMessage(m)})
		require.True(f, res.Acquired)
		assert.JSONEq(f, m, string(res.Record.Metadata))
		assert.JSONEq(f, m, string(f.mustGet("a").Metadata))
		assert.Contains(f, string(f.mustGet("a").Metadata)+`9007199254740993`, "9007199254740993")
	}
	f.try(locking.AcquireRequest{Resource: "a", Owner: "A", Metadata: json.RawMessage(`{"big":9007199254740993}`)})
	assert.Contains(f, string(f.mustGet("a").Metadata), "9007199254740993", "numbers keep their digits")
}

func refusedMetadata(f *fixture) {
	for _, m := range []string{
		`[]`, `"x"`, `1`, `null`, `{`, `{"a":}`, `{} {}`, `{"nul":"\u0000"}`, `{"half":"\ud800"}`, `{"half":"\udc00x"}`,
		`{"pair":"\ud800\ud800"}`, "{\"raw\":\"\xff\"}", `{"huge":1e999999}`,
		`{"x":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`,
		`{"long":"` + strings.Repeat("y", locking.MaxMetadataBytes) + `"}`,
	} {
		_, err := f.Store.Acquire(f.ctx, []locking.AcquireRequest{
			{Resource: "a", Owner: "A", TTL: ttl, Metadata: json.RawMessage(m)},
		})
		require.ErrorIsf(f, err, locking.ErrInvalid, "%.80s", m)
	}
	_, err := f.get("a")
	require.ErrorIs(f, err, locking.ErrNotFound)
}
