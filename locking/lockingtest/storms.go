package lockingtest

import (
	"context"
	"math"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func stormCases() []testCase {
	return []testCase{{"a storm with zombies keeps the promises", weathers}}
}

// weathers is P1 and P2 under load. It goes on until it has met enough of everything, however fast the store is: locks
// expire by time, not by rounds. A store that never gets there ends with the context, and fails.
func weathers(f *fixture) {
	f.onlyOnTheTable("a server does not say which grant is a takeover, and its shortest TTL is a second")
	h := Record(f.Store)
	ctx, cancel := context.WithTimeout(f.ctx, 4*time.Minute)
	defer cancel()
	stats, err := Storm(ctx, StormConfig{
		Store: h, Rounds: math.MaxInt32, TTL: 10 * time.Millisecond,
		Enough: func(s Stats) bool {
			return s.Takeovers >= 5 && s.Grants >= 100 && s.Refusals >= 20 && s.Renewals >= 50 && s.Releases >= 20 &&
				s.ZombiesRefused >= 30
		},
	})
	require.NoError(f, err)
	f.Logf("%+v", stats)
	assert.GreaterOrEqual(f, stats.Takeovers, int64(5))
	assert.GreaterOrEqual(f, stats.ZombiesRefused, int64(30))
	for _, problem := range h.Check() {
		f.Error(problem)
	}
}
