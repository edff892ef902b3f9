package database

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

var errAway = errors.New("away")

func TestWaitTriesAgainAndSaysSo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		core, logs := observer.New(zap.InfoLevel)
		var pauses []time.Duration
		last, calls := time.Now(), 0
		err := wait(t.Context(), zap.New(core), func(context.Context) error {
			pauses = append(pauses, time.Since(last))
			last, calls = time.Now(), calls+1
			if calls < 40 {
				return errAway
			}
			return nil
		})
		require.NoError(t, err)
		assert.Less(t, pauses[1], 101*time.Millisecond)
		for _, p := range pauses[1:] {
			assert.GreaterOrEqual(t, p, 50*time.Millisecond)
			assert.LessOrEqual(t, p, 5*time.Second)
		}
		warnings := logs.FilterMessage("waiting for the database").All()
		total := last.Sub(warnings[0].Time)
		assert.InDelta(t, total.Seconds()/30, float64(len(warnings)), 1.5, "one warning at once, then one every 30 s")
		for i, w := range warnings[1:] {
			assert.GreaterOrEqual(t, w.Time.Sub(warnings[i].Time), 30*time.Second)
		}
		assert.Equal(t, 1, logs.FilterMessage("the database is back").Len())
	})
}

func TestWaitIsSilentWhenNothingIsWrong(t *testing.T) {
	t.Parallel()
	core, logs := observer.New(zap.DebugLevel)
	require.NoError(t, wait(t.Context(), zap.New(core), func(context.Context) error { return nil }))
	assert.Zero(t, logs.Len())
}

func TestWaitGivesUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("enough"))
		defer cancel()
		err := wait(ctx, zap.NewNop(), func(context.Context) error { return errAway })
		require.ErrorIs(t, err, errAway)
		require.ErrorContains(t, err, "enough")
		for _, hopeless := range []error{ErrRefused, ErrFileReplaced} {
			calls := 0
			err = wait(t.Context(), zap.NewNop(), func(context.Context) error {
				calls++
				return fmt.Errorf("x: %w", hopeless)
			})
			require.ErrorIs(t, err, hopeless)
			assert.Equal(t, 1, calls)
		}
	})
}
