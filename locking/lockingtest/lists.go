package lockingtest

import (
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/locking"
)

func listCases() []testCase {
	return []testCase{
		{"a list is in byte order and has pages", listPages},
		{"a list filters by state and owner", listStates},
		{"a prefix is compared byte by byte", listPrefixes},
		{"a list has bounds", listBounds},
	}
}

func (f *fixture) list(filter locking.ListFilter) []string {
	f.Helper()
	rows, err := f.Store.List(f.ctx, filter)
	require.NoError(f, err)
	out := []string{}
	for _, r := range rows {
		out = append(out, r.Resource)
	}
	return out
}

func listPages(f *fixture) {
	byteOrder := []string{"A", "B", "Z", "a", "b", "ä", "中", "\U0001F512"}
	for _, i := range []int{3, 0, 7, 2, 5, 1, 6, 4} {
		f.mustAcquire(byteOrder[i], "A")
	}
	assert.Equal(f, byteOrder, f.list(locking.ListFilter{}))
	var pages []string
	after := ""
	for {
		page := f.list(locking.ListFilter{Limit: 3, After: after})
		if len(page) == 0 {
			break
		}
		pages, after = append(pages, page...), page[len(page)-1]
	}
	assert.Equal(f, byteOrder, pages)
}

func listStates(f *fixture) {
	f.mustAcquire("a", "A")
	f.mustAcquire("b", "B")
	f.mustRelease(f.mustAcquire("released", "A"))
	f.mustAcquire("expired", "A")
	f.expire("expired")
	f.mustForce(f.mustAcquire("forced", "A"), false)
	f.mustForce(f.mustAcquire("forced expired", "A"), false)
	f.expire("forced expired")
	f.mustForce(f.mustAcquire("freed", "A"), true)
	assert.Equal(f, []string{"a", "b", "forced"}, f.list(locking.ListFilter{}))
	assert.Equal(f, []string{"a", "forced"}, f.list(locking.ListFilter{Owner: "A"}))
	assert.Equal(f, []string{"b"}, f.list(locking.ListFilter{Owner: "B", State: locking.StateHeld}))
	assert.Equal(f, []string{"expired"}, f.list(locking.ListFilter{State: locking.StateExpired}))
	assert.Empty(f, f.list(locking.ListFilter{State: locking.StateExpired, Owner: "B"}))
}

func listPrefixes(f *fixture) {
	for _, name := range []string{"a", "a%", "a%b", "a_", "ab", "aB", "a\\", "a\U0010FFFDz", "b"} {
		f.mustAcquire(name, "A")
	}
	assert.Equal(f, []string{"a%", "a%b"}, f.list(locking.ListFilter{Prefix: "a%"}))
	assert.Equal(f, []string{"a_"}, f.list(locking.ListFilter{Prefix: "a_"}))
	assert.Equal(f, []string{"a\\"}, f.list(locking.ListFilter{Prefix: "a\\"}))
	assert.Equal(f, []string{"ab"}, f.list(locking.ListFilter{Prefix: "ab"}))
	assert.Equal(f, []string{"a\U0010FFFDz"}, f.list(locking.ListFilter{Prefix: "a\U0010FFFD"}))
	assert.Len(f, f.list(locking.ListFilter{Prefix: "a"}), 8)
	assert.Equal(f, []string{"ab", "a\U0010FFFDz"}, f.list(locking.ListFilter{Prefix: "a", After: "a_"}))
	assert.Empty(f, f.list(locking.ListFilter{Prefix: "c"}))
}

func listBounds(f *fixture) {
	for _, filter := range []locking.ListFilter{
		{Limit: -1}, {Limit: locking.MaxList + 1}, {State: "gone"}, {Prefix: "\xff"}, {Owner: "a\x00"}, {After: "\xc3"},
	} {
		_, err := f.Store.List(f.ctx, filter)
		require.ErrorIsf(f, err, locking.ErrInvalid, "%+v", filter)
	}
}
