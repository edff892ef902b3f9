package supervisor

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestWindowKeepsHeadAndTail(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := window{headMax: rapid.IntRange(0, 20).Draw(t, "head"), tailMax: rapid.IntRange(0, 20).Draw(t, "tail")}
		var all []byte
		for _, chunk := range rapid.SliceOf(rapid.SliceOfN(rapid.Byte(), 0, 50)).Draw(t, "chunks") {
			w.write(chunk)
			all = append(all, chunk...)
		}
		head := min(len(all), w.headMax)
		tail := min(len(all)-head, w.tailMax)
		got := w.output()
		require.EqualValues(t, len(all), got.Total)
		require.True(t, bytes.Equal(all[:head], got.Head), "head %q of %q", got.Head, all)
		require.True(t, bytes.Equal(all[len(all)-tail:], got.Tail), "tail %q of %q", got.Tail, all)
		require.LessOrEqual(t, len(w.head)+len(w.tail), w.headMax+w.tailMax)
	})
}
