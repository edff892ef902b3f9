//go:build linux

package supervisor

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/boottime"
)

func TestLastLook(t *testing.T) {
	t.Parallel()
	later := boottime.Now() + plenty
	assert.Nil(t, lastLook(childOrder{Parent: os.Getppid(), StopAt: later}))
	refused := lastLook(childOrder{Parent: os.Getppid(), StopAt: boottime.Now()})
	require.NotNil(t, refused)
	assert.Equal(t, ReasonStale, refused.Reason)
	refused = lastLook(childOrder{Parent: os.Getppid() + 1, StopAt: later})
	require.NotNil(t, refused)
	assert.Equal(t, ReasonSupervisor, refused.Reason, "an orphan does not become a command")
}

func TestStaleOrderIsNotForked(t *testing.T) {
	t.Parallel()
	var s supervisor // forking would need what it does not have
	for _, spec := range []wireSpec{{Deadline: boottime.Now() + plenty}, {StopAt: boottime.Now() + plenty}} {
		_, refused := s.launch(1, &spec)
		require.NotNil(t, refused)
		assert.Equal(t, ReasonStale, refused.Reason)
	}
}

// Only ready and then the end of the pipe means that the command was executed.
func TestReadVerdict(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Reason{
		`{"ready":true}` + "\n": "",
		"":                      ReasonSystem,
		"{}\n":                  ReasonSystem,
		`{"ready":true}` + "\n" + `{"refused":{"reason":"not_executable"}}` + "\n": ReasonNotExecutable,
		`{"refused":{"reason":"stale"}}` + "\n":                                    ReasonStale,
		`{"ready":tr`:                                                              ReasonSystem,
	} {
		refused := readVerdict(strings.NewReader(text))
		if want == "" {
			assert.Nil(t, refused, text)
		} else if assert.NotNil(t, refused, text) {
			assert.Equal(t, want, refused.Reason, text)
		}
	}
}
