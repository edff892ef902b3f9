package daemon

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/supervisor"
	"github.com/cronlatch/cronlatch/jobs"
)

func TestWhoseFaultAFailedStartIs(t *testing.T) {
	t.Parallel()
	for reason, want := range map[supervisor.Reason]jobs.StartError{
		supervisor.ReasonStale:         {Lost: jobs.ReasonStaleStart},
		supervisor.ReasonCancelled:     {Lost: jobs.ReasonStaleStart},
		supervisor.ReasonSupervisor:    {Lost: jobs.ReasonSupervisor},
		supervisor.ReasonNotFound:      {ExitCode: 127},
		supervisor.ReasonNotExecutable: {ExitCode: 126},
		supervisor.ReasonDir:           {ExitCode: 126},
		supervisor.ReasonSystem:        {ExitCode: 126},
	} {
		var got *jobs.StartError
		require.ErrorAs(t, startError(&supervisor.StartError{Reason: reason}), &got)
		assert.Equal(t, want.Lost, got.Lost, reason)
		assert.Equal(t, want.ExitCode, got.ExitCode, reason)
	}
	var got *jobs.StartError
	require.ErrorAs(t, startError(errors.New("anything else")), &got)
	assert.Equal(t, 126, got.ExitCode)
}
