package jobs

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// A piece of a task's output is what was written there, and there is one until the end.
func TestTaskOutputSince(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var o taskOutput
		var all []byte
		for _, n := range rapid.SliceOfN(rapid.IntRange(0, 300_000), 0, 6).Draw(t, "lengths") {
			p := make([]byte, n)
			for i := range p {
				p[i] = byte((len(all) + i) % 251)
			}
			o.write(p)
			all = append(all, p...)
		}
		offset := int64(rapid.IntRange(0, len(all)+3).Draw(t, "offset"))
		c := o.since(offset, MaxChunk)
		require.EqualValues(t, len(all), c.Total)
		require.GreaterOrEqual(t, c.At, min(offset, c.Total))
		require.LessOrEqual(t, len(c.Data), MaxChunk)
		require.True(t, bytes.Equal(all[c.At:c.At+int64(len(c.Data))], c.Data))
		require.True(t, len(c.Data) > 0 || offset >= c.Total)
	})
}
