package typo

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestDistance(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"", "abc", 3},
		{"schedule", "schedul", 1},
		{"schedule", "shcedule", 1}, // neighbors swapped
		{"kitten", "sitting", 3},
		{"für", "fur", 1},
		{"ca", "abc", 3}, // not 2: no substring is edited twice
	} {
		assert.Equal(t, tt.want, Distance(tt.a, tt.b), "%q %q", tt.a, tt.b)
		assert.Equal(t, tt.want, Distance(tt.b, tt.a), "%q %q", tt.b, tt.a)
	}
}
