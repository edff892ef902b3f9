package resource

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestValidateAccepts(t *testing.T) {
	t.Parallel()
	names := []string{
		"a", "report:monthly-2026-05", "db/orders", "50%", "it's", `back\slash`, " padded ", "...", ".hidden", "Zürich", "🦀",
		"�", strings.Repeat("x", MaxBytes), strings.Repeat("é", 127) + "x",
	}
	for _, name := range names {
		assert.NoError(t, Validate(name), "%q", name)
	}
}

func TestValidateRefuses(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, message string
		offset        int
	}{
		{"", "name is empty", 0},
		{".", `name must not be ".": clients and proxies take it for a step in a path`, 0},
		{"..", `name must not be "..": clients and proxies take it for a step in a path`, 0},
		{strings.Repeat("x", 256), "name has 256 bytes; at most 255 are allowed", 0},
		{strings.Repeat("é", 128), "name has 256 bytes; at most 255 are allowed", 0},
		{"a\x00", "name has a control character (U+0000) at byte 2", 1},
		{"a\nb", "name has a control character (U+000A) at byte 2", 1},
		{"\x7f", "name has a control character (U+007F) at byte 1", 0},
		{"a\u0085", "name has a control character (U+0085) at byte 2", 1},
		{"a\u200db", "name has an invisible format character (U+200D) at byte 2", 1},
		{"\ufeffa", "name has an invisible format character (U+FEFF) at byte 1", 0},
		{"a\u202eb", "name has an invisible format character (U+202E) at byte 2", 1},
		{"a\u2028", "name has a line separator (U+2028) at byte 2", 1},
		{"ab\xff", "name has invalid UTF-8 (0xFF) at byte 3", 2},
		{"\xed\xa0\x80", "name has invalid UTF-8 (0xED) at byte 1", 0},
	}
	for _, c := range cases {
		err := Validate(c.name)
		require.ErrorIs(t, err, ErrInvalid, "%q", c.name)
		require.EqualError(t, err, c.message)
		var e *Error
		require.ErrorAs(t, err, &e)
		assert.Equal(t, c.offset, e.Offset, "%q", c.name)
	}
}
