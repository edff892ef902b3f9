package dbtime

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/uptrace/bun/dialect"
)

func TestScanGivesUTC(t *testing.T) {
	t.Parallel()
	want := time.Date(2026, 3, 8, 7, 0, 0, 5e6, time.UTC)
	for _, src := range []any{want, want.In(time.FixedZone("", -4*3600)), want.UnixMilli()} {
		var got Time
		require.NoError(t, got.Scan(src))
		assert.Equal(t, want, got.Time)
		assert.Equal(t, want, *got.Ptr())
	}
	got := Time{want}
	require.NoError(t, got.Scan(nil))
	assert.True(t, got.IsZero(), "NULL")
	assert.Nil(t, got.Ptr())
	require.Error(t, got.Scan("2026-03-08"))
}

func TestArg(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 8, 3, 0, 0, 5678e3, time.FixedZone("", -4*3600))
	assert.Equal(t, "2026-03-08T07:00:00.005678Z", Arg(dialect.PG, at))
	assert.Equal(t, at.UnixMilli(), Arg(dialect.SQLite, at))
	assert.Nil(t, Arg(dialect.PG, time.Time{}))
	assert.Nil(t, Arg(dialect.SQLite, time.Time{}))
	_, err := Time{at}.Value()
	require.Error(t, err, "a time that does not know its database is not written")
}

func TestMillisRoundsUp(t *testing.T) {
	t.Parallel()
	assert.Equal(t, int64(1), Millis(time.Nanosecond))
	assert.Equal(t, int64(1), Millis(time.Millisecond))
	assert.Equal(t, int64(30_000), Millis(30*time.Second))
	assert.Zero(t, Millis(0))
}
