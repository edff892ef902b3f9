package demo

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// told is what a story says of lines of the audit.
func told(t *testing.T, lines ...map[string]any) string {
	t.Helper()
	var said strings.Builder
	s := newStory(func(format string, args ...any) { _, _ = fmt.Fprintf(&said, format+"\n", args...) })
	for _, l := range lines {
		text, err := json.Marshal(l)
		require.NoError(t, err)
		_, ok := s.tell(text)
		require.True(t, ok)
	}
	return said.String()
}

// A takeover is one whoever is heard first: the replica that found the lock expired, or the one that has it now.
func TestATakeoverIsToldInAnyOrder(t *testing.T) {
	t.Parallel()
	about := func(action, replica string, run, token int) map[string]any {
		return map[string]any{
			"event.action": action, "replica": replica, "job": jobIndex, "resource": jobIndex, "run.id": run, "fencing_token": token,
			"reason": "replica_lost",
		}
	}
	first, lost, next := about("run.claim", "b", 1, 7), about("run.lose", "a", 1, 7), about("run.claim", "c", 2, 8)
	const takeover = "TAKEOVER: replica c claimed index:search as run 2 and took over its lock from replica b: the fencing token grew from 7 to 8\n"
	inOrder := told(t, first, lost, next)
	assert.Equal(t, 1, strings.Count(inOrder, takeover), inOrder)
	overtaken := told(t, first, next, lost, about("run.claim", "a", 3, 9))
	assert.Equal(t, 1, strings.Count(overtaken, takeover), overtaken)
	assert.Equal(t, 1, strings.Count(overtaken, "TAKEOVER"), overtaken)

	first["run.outcome"], first["event.action"] = "succeeded", "run.finish"
	assert.NotContains(t, told(t, about("run.claim", "b", 1, 7), next, first), "TAKEOVER")
}
