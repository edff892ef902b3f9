package scheduler

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"

	"github.com/cronlatch/cronlatch/jobs"
)

// running is a claimed run of a job of that name.
func (b *bench) running(name string) jobs.Run {
	b.t.Helper()
	j := named(name, nil)(b.t)
	b.put(b.due(j, 5*time.Second))
	won := b.mustClaim(1, name)
	require.Len(b.t, won, 1)
	return won[0].run
}

func (b *bench) handIn(run *jobs.Run, at int64, data string) bool {
	b.t.Helper()
	stored, err := b.addOutput(b.ctx(), []fresh{{chunk{at, []byte(data)}, &stream{run: run}}})
	require.NoError(b.t, err)
	return slices.Contains(stored, run.ID)
}

func (b *bench) since(run, offset int64) jobs.OutputPart {
	b.t.Helper()
	l, err := jobs.OpenLedger(b.db)
	require.NoError(b.t, err)
	part, err := l.OutputSince(b.ctx(), run, offset, 1<<20)
	require.NoError(b.t, err)
	return part
}

func (b *bench) chunks(run int64) (n int) {
	b.t.Helper()
	require.NoError(b.t, b.db.NewRaw(`SELECT count(*) FROM run_output_chunks WHERE run_id = ?`, run).Scan(b.ctx(), &n))
	return n
}

func (b *bench) finishWith(run jobs.Run, output string, chunks bool) finished {
	b.t.Helper()
	done, err := b.finish(b.ctx(), &report{
		run: run, outcome: jobs.OutcomeSucceeded, chunks: chunks,
		output: jobs.Output{Head: []byte(output), Total: int64(len(output))},
	})
	require.NoError(b.t, err)
	return done
}

func TestOutputIsReadWhileTheRunRuns(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		run := b.running("prints")
		assert.Empty(b.t, b.since(run.ID, 0).Data)
		require.True(b.t, b.handIn(&run, 0, "one\n"))
		require.True(b.t, b.handIn(&run, 4, "two\x00\xff"))
		part := b.since(run.ID, 0)
		assert.Equal(b.t, "one\ntwo\x00\xff", string(part.Data))
		assert.Equal(b.t, jobs.StateRunning, part.Run.State)
		assert.False(b.t, part.Ended)
		part = b.since(run.ID, 6)
		assert.Equal(b.t, "o\x00\xff", string(part.Data))
		assert.EqualValues(b.t, 6, part.At)
		assert.EqualValues(b.t, 9, part.Total)
		assert.Empty(b.t, b.since(run.ID, 9).Data)

		b.finishWith(run, "one\ntwo\x00\xffthree", true)
		assert.Zero(b.t, b.chunks(run.ID))
		part = b.since(run.ID, 9)
		assert.Equal(b.t, "three", string(part.Data))
		assert.True(b.t, part.Ended)
		assert.EqualValues(b.t, 14, part.Total)
		assert.Zero(b.t, part.Next)
		assert.False(b.t, b.handIn(&run, 14, "late"), "it has ended")
		assert.Zero(b.t, b.chunks(run.ID))
	})
}

// Small pieces share a row, also when the answer to a statement was lost and it is repeated.
func TestAChunkIsReplacedByALongerOne(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		run := b.running("prints")
		for _, text := range []string{"a", "ab", "ab", "abc"} {
			require.True(b.t, b.handIn(&run, 0, text))
		}
		assert.Equal(b.t, 1, b.chunks(run.ID))
		assert.Equal(b.t, "abc", string(b.since(run.ID, 0).Data))
	})
}

// However much a run prints, its beginning and its end are kept while it runs, and nothing between them.
func TestChunksAreBounded(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		run := b.running("floods")
		block := strings.Repeat("x", jobs.MaxChunk)
		at := int64(0)
		for i := range 20 {
			require.True(b.t, b.handIn(&run, at, block))
			at += int64(len(block)) + int64(i%2)*1_000_000 // it prints faster than it is looked at
		}
		var kept int64
		require.NoError(b.t, b.db.NewRaw(`SELECT sum(length(data)) FROM run_output_chunks`).Scan(b.ctx(), &kept))
		assert.LessOrEqual(b.t, kept, int64(keptHead+keptTail))
		head := b.since(run.ID, 0)
		assert.EqualValues(b.t, 0, head.At)
		assert.Len(b.t, head.Data, keptHead)
		tail := b.since(run.ID, head.End())
		assert.Greater(b.t, tail.At, head.End(), "a gap")
		assert.Equal(b.t, tail.Total, tail.End())
		assert.Greater(b.t, len(tail.Data), jobs.MaxChunk)
	})
}

// A run whose replica was lost keeps what it had handed in. So does one whose supervisor died with its output.
func TestALostRunKeepsItsOutput(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		run, other := b.running("lost"), b.running("without a supervisor")
		require.True(b.t, b.handIn(&run, 0, "last words"))
		require.True(b.t, b.handIn(&other, 0, "other words"))
		_, err := b.db.NewRaw(`DELETE FROM distributed_locks WHERE resource = 'lost'`).Exec(b.ctx())
		require.NoError(b.t, err)
		lost, err := b.recoverLost(b.ctx(), identity{Replica: "b"})
		require.NoError(b.t, err)
		require.Len(b.t, lost, 1)
		part := b.since(run.ID, 0)
		assert.Equal(b.t, "last words", string(part.Data))
		assert.True(b.t, part.Ended)
		assert.False(b.t, b.handIn(&run, 10, "of a ghost"))
		assert.True(b.t, b.finishWith(run, "", true).late)

		b.finishWith(other, "", true)
		assert.Equal(b.t, "other words", string(b.since(other.ID, 0).Data))
	})
}

func TestOutputOfAnotherAttemptIsNotMixedIn(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		run := b.running("prints")
		stranger := run
		stranger.FencingToken++
		assert.False(b.t, b.handIn(&stranger, 0, "not mine"))
		assert.Zero(b.t, b.chunks(run.ID))
	})
}

// The end of a run and a last chunk meet in the database: whoever comes first, no chunk is left behind the end.
func TestNoChunkComesAfterTheEnd(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		var runs []jobs.Run
		for i := range 30 {
			runs = append(runs, b.running(fmt.Sprint("job-", i)))
		}
		var wg sync.WaitGroup
		for i := range runs {
			run := &runs[i]
			wg.Go(func() {
				for n := range int64(20) {
					if stored, err := b.addOutput(b.ctx(), []fresh{{chunk{n, []byte("x")}, &stream{run: run}}}); err != nil || len(stored) == 0 && n > 0 {
						return
					}
				}
			})
			wg.Go(func() {
				_, err := b.finish(b.ctx(), &report{
					run: *run, outcome: jobs.OutcomeSucceeded, output: jobs.Output{Head: []byte("x"), Total: 1}, chunks: true,
				})
				if err != nil {
					b.t.Error(err)
				}
			})
		}
		wg.Wait()
		for i := range runs {
			assert.Equal(b.t, jobs.OutcomeSucceeded, b.get(runs[i].ID).Outcome)
			assert.Zero(b.t, b.chunks(runs[i].ID))
		}
	})
}

// What follows is without a database's part.

// spoken is a process that has printed text.
type spoken struct {
	Process

	mu   sync.Mutex
	text []byte
	err  error
	asks int
}

func (p *spoken) say(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.text = append(p.text, text...)
}

func (p *spoken) Output(_ context.Context, since int64) (jobs.Chunk, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asks++
	data := p.text[min(since, int64(len(p.text))):]
	return jobs.Chunk{At: since, Data: bytes.Clone(data[:min(len(data), jobs.MaxChunk)]), Total: int64(len(p.text))}, p.err
}

// streaming is a scheduler with nothing but streams, and a clock that stands still.
func (b *bench) streaming() (s *Scheduler, pass func()) {
	now := time.Hour
	s = &Scheduler{store: b.store, o: Options{Log: zap.NewNop(), Boot: func() time.Duration { return now }}}
	s.live.opened = make(chan struct{}, 1)
	return s, func() { now += streamEvery }
}

func TestAShortRunHandsInNothing(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		s, pass := b.streaming()
		run, p := b.running("prints"), &spoken{}
		p.say("hello")
		live := s.live.open(&run, p, s.o.Boot())
		require.NoError(b.t, s.stream(b.ctx()))
		assert.Zero(b.t, p.asks, "it is too young")
		pass()
		require.NoError(b.t, s.stream(b.ctx()))
		assert.Equal(b.t, "hello", string(b.since(run.ID, 0).Data))
		require.NoError(b.t, s.stream(b.ctx()))
		p.say(" world")
		require.NoError(b.t, s.stream(b.ctx()))
		assert.Equal(b.t, "hello world", string(b.since(run.ID, 0).Data))
		assert.Equal(b.t, 1, b.chunks(run.ID), "small pieces share a row")
		assert.True(b.t, s.live.close(live))
		p.say("!")
		require.NoError(b.t, s.stream(b.ctx()))
		assert.Equal(b.t, 3, p.asks, "nobody asks a run that has ended")

		quiet := s.live.open(&run, &spoken{}, s.o.Boot())
		pass()
		require.NoError(b.t, s.stream(b.ctx()))
		assert.False(b.t, s.live.close(quiet), "there is nothing to be removed")
		assert.Nil(b.t, s.live.open(&run, &actedProcess{}, s.o.Boot()), "it says nothing before its end")
		assert.False(b.t, s.live.close(nil))
	})
}

// A beat has room for so much; who found none comes first in the next one.
func TestEveryRunHasItsTurn(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		s, pass := b.streaming()
		const count = streamBytes/jobs.MaxChunk + 4
		loud := make([]*spoken, count)
		runs := make([]jobs.Run, count)
		for i := range loud {
			loud[i], runs[i] = &spoken{}, b.running(fmt.Sprint("job-", i))
			loud[i].say(strings.Repeat("x", 10*jobs.MaxChunk))
			s.live.open(&runs[i], loud[i], s.o.Boot())
		}
		pass()
		for range 2 {
			require.NoError(b.t, s.stream(b.ctx()))
		}
		for i := range runs {
			assert.NotZero(b.t, b.chunks(runs[i].ID), "run %d", i)
			assert.LessOrEqual(b.t, loud[i].asks, 2)
		}
	})
}

// What could not be handed in is handed in later, whole; one process that does not answer is not in the others' way.
func TestWhatWasNotHandedInComesLater(t *testing.T) {
	t.Parallel()
	each(t, func(b *bench) {
		s, pass := b.streaming()
		run, other := b.running("prints"), b.running("mute")
		p, mute := &spoken{}, &spoken{err: errors.New("no answer")}
		s.live.open(&other, mute, s.o.Boot())
		s.live.open(&run, p, s.o.Boot())
		p.say("one ")
		pass()
		away, cancel := context.WithCancel(b.ctx())
		cancel()
		require.Error(b.t, s.stream(away))
		p.say("two")
		require.NoError(b.t, s.stream(b.ctx()))
		assert.Equal(b.t, "one two", string(b.since(run.ID, 0).Data))
	})
}
