//go:build linux

package supervisor

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// ask asks once for what the command has printed.
func ask(tb testing.TB, p *Process, since int64) Chunk {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), soon)
	defer cancel()
	c, err := p.Output(ctx, since)
	require.NoError(tb, err)
	return c
}

// release lets a script go on that waits for the file.
func release(tb testing.TB, spec Spec) {
	tb.Helper()
	require.NoError(tb, os.WriteFile(spec.Dir+"/go", nil, 0o600))
}

const waitForGo = `; while ! [ -e go ]; do sleep 0.01; done; `

func TestOutputOfARunningCommand(t *testing.T) {
	t.Parallel()
	c := newClient(t, CgroupsAuto)
	spec := shell(t, `printf one; note one`+waitForGo+`printf two`)
	p := start(t, c, spec)
	noted(t, spec, "one")
	eventually(t, func() bool { return ask(t, p, 0).Total == 3 }, "it does not print")
	assert.Equal(t, Chunk{Data: []byte("one"), Total: 3}, ask(t, p, 0))
	assert.Equal(t, Chunk{At: 1, Data: []byte("ne"), Total: 3}, ask(t, p, 1))
	assert.Empty(t, ask(t, p, 3).Data)
	release(t, spec)
	assert.Equal(t, "onetwo", string(wait(t, p).Output.Head))
	assert.Empty(t, ask(t, p, 3).Data, "the result has it")
}

// What is read piece by piece is what was printed, in its order, while nothing is dropped.
func TestPiecesJoinToTheOutput(t *testing.T) {
	t.Parallel()
	c := newClient(t, CgroupsAuto)
	const lines = 40_000
	spec := shell(t, `i=0; while [ $i -lt `+strconv.Itoa(lines)+` ]; do echo $i; i=$((i+1)); done`+waitForGo)
	spec.HeadBytes, spec.TailBytes = 64<<10, 1<<20
	p := start(t, c, spec)
	var want strings.Builder
	for i := range lines {
		fmt.Fprintln(&want, i)
	}
	var got []byte
	eventually(t, func() bool {
		part := ask(t, p, int64(len(got)))
		require.EqualValues(t, len(got), part.At)
		require.LessOrEqual(t, len(part.Data), chunkSize)
		got = append(got, part.Data...)
		return len(got) == want.Len()
	}, "not everything comes")
	assert.Equal(t, want.String(), string(got))
	release(t, spec)
	wait(t, p)
}

// A flood costs the supervisor no memory and delays no order, although somebody reads it all the time: each piece says where
// it lies, and 16 bytes of the stream say the same.
func TestFloodThatIsRead(t *testing.T) {
	t.Parallel()
	c := newClient(t, CgroupsAuto)
	execute(t, c, shell(t, "head -c 1000000 /dev/zero"))
	before := highWater(t, c.PID())
	const records = 200 << 20 / 16
	spec := shell(t, `awk 'BEGIN { for (i = 0; i < `+strconv.Itoa(records)+`; i++) printf "%015d\n", i }'`+waitForGo)
	spec.TailBytes = 192 << 10
	p := start(t, c, spec)
	var next int64
	gaps, pieces := 0, 0
	var slowest time.Duration
	for next < records*16 {
		asked := time.Now()
		part := ask(t, p, next)
		slowest = max(slowest, time.Since(asked))
		if part.At > next {
			gaps++
		}
		require.GreaterOrEqual(t, part.At, next)
		checkRecords(t, part)
		next = part.At + int64(len(part.Data))
		pieces++
		p.Extend(spec.StopAt, spec.Deadline)
		if pieces%4 == 0 { // somebody who does not always ask
			eventually(t, func() bool { return len(ask(t, p, next).Data) == chunkSize || ask(t, p, next).Total == records*16 }, "no more comes")
		}
	}
	assert.Less(t, highWater(t, c.PID())-before, int64(16<<20))
	assert.Less(t, slowest, 5*time.Second)
	t.Logf("%d pieces, %d gaps, slowest answer %s", pieces, gaps, slowest)
	release(t, spec)
	assert.EqualValues(t, records*16, wait(t, p).Output.Total)
}

// checkRecords wants every whole record of a piece to say where it lies.
func checkRecords(t *testing.T, c Chunk) {
	t.Helper()
	for at := (16 - c.At%16) % 16; at+16 <= int64(len(c.Data)); at += 16 {
		n, err := strconv.ParseInt(strings.TrimLeft(string(c.Data[at:at+15]), "0")+"0", 10, 64)
		require.NoError(t, err)
		require.Equal(t, (c.At+at)/16*10, n, "at byte %d", c.At+at)
	}
}

// A question that was given up is the only one on its way, and its answer is not lost.
func TestAQuestionThatWasGivenUp(t *testing.T) {
	t.Parallel()
	c := newClient(t, CgroupsAuto)
	spec := shell(t, `printf one; note one`+waitForGo)
	p := start(t, c, spec)
	noted(t, spec, "one")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 {
		if _, err := p.Output(ended, 0); err != nil {
			require.ErrorIs(t, err, errNoAnswer)
		}
	}
	eventually(t, func() bool { return string(ask(t, p, 1).Data) == "ne" }, "no answer")
	release(t, spec)
	wait(t, p)
}

// A secret is in no piece, however it was printed and wherever the kept parts are cut.
func TestSecretsAreMaskedInTheStream(t *testing.T) {
	t.Parallel()
	c := newClient(t, CgroupsAuto)
	spec := shell(t, `printf 'a swordfish'; printf ' sword'; sleep 0.1; printf 'fish z'; note one`+waitForGo+`printf ' swordf'`)
	spec.Mask, spec.HeadBytes = [][]byte{[]byte("swordfish")}, 8
	p := start(t, c, spec)
	noted(t, spec, "one")
	eventually(t, func() bool { return ask(t, p, 0).Total == 11 }, "it does not print")
	assert.Equal(t, "a *** **", string(ask(t, p, 0).Data))
	assert.Equal(t, "* z", string(ask(t, p, 8).Data))
	release(t, spec)
	assert.Equal(t, Output{Head: []byte("a *** **"), Tail: []byte("* z swordf"), Total: 18}, wait(t, p).Output)
}

// Whatever was written and whatever is asked for, a piece is what was written there.
func TestWindowSince(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := window{headMax: rapid.IntRange(0, 20).Draw(t, "head"), tailMax: rapid.IntRange(0, 20).Draw(t, "tail")}
		var all []byte
		for _, chunk := range rapid.SliceOf(rapid.SliceOfN(rapid.Byte(), 0, 30)).Draw(t, "chunks") {
			w.write(chunk)
			all = append(all, chunk...)
		}
		offset := int64(rapid.IntRange(0, len(all)+3).Draw(t, "offset"))
		limit := rapid.IntRange(1, 25).Draw(t, "limit")
		c := w.since(offset, limit)
		require.EqualValues(t, len(all), c.Total)
		require.GreaterOrEqual(t, c.At, min(offset, c.Total))
		require.LessOrEqual(t, len(c.Data), limit)
		require.True(t, bytes.Equal(all[c.At:c.At+int64(len(c.Data))], c.Data))
		kept := offset < int64(len(w.head)) || offset >= c.Total-int64(len(w.tail))
		require.True(t, !kept || c.At == min(offset, c.Total), "what is kept is given")
		require.True(t, len(c.Data) > 0 || offset >= c.Total || w.tailMax == 0, "there is always something, until the end")
	})
}
