package boottime

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNowNeverGoesBack(t *testing.T) {
	t.Parallel()
	last := Now()
	assert.Positive(t, last)
	for range 10_000 {
		now := Now()
		assert.GreaterOrEqual(t, now, last)
		last = now
	}
}

func TestSuspendCountsWhereTheSystemCan(t *testing.T) {
	t.Parallel()
	assert.Equal(t, runtime.GOOS == "linux" || runtime.GOOS == "darwin", CountsSuspend())
}
