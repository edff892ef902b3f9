package lockingtest

import (
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func stormCases() []testCase {
	return []testCase{{"a storm with zombies keeps the promises", weathers}}
}

// weathers is P1 and P2 under load; it fails as well when the load met too little.
func weathers(f *fixture) {
	h := Record(f.Store)
	stats, err := Storm(f.ctx, StormConfig{
		Store: h, Rounds: 5000, TTL: 10 * time.Millisecond,
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
