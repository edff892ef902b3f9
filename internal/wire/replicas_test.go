package wire

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTheOddReplica(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ hashes, odd string }{
		"one":               {"a", "-"},
		"all agree":         {"aaa", "---"},
		"one is behind":     {"aba", "-x-"},
		"two and two":       {"abab", "xxxx"},
		"three of a kind":   {"cabcac", "-xx-x-"},
		"silent ones count": {"aB", "--"}, // not
	} {
		views := make([]Replica, len(c.hashes))
		for i, h := range c.hashes {
			views[i] = Replica{State: "up", Definitions: string(h)}
			if h < 'a' {
				views[i].State = "silent"
			}
		}
		markOdd(views)
		var got strings.Builder
		for _, v := range views {
			got.WriteByte(map[bool]byte{true: 'x', false: '-'}[v.Odd])
		}
		assert.Equal(t, c.odd, got.String(), name)
	}
}
