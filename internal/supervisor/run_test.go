package supervisor

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// recorder is a tree that only writes down what is done to it.
type recorder struct {
	log  strings.Builder
	dead bool
}

func (t *recorder) signal(...syscall.Signal) { t.log.WriteString("T") }

func (t *recorder) kill()       { t.log.WriteString("K") }
func (t *recorder) stun(int)    {}
func (t *recorder) alive() bool { return !t.dead }
func (*recorder) remove() error { return nil }

// TestWhenARunEnds steps a run through seconds of the boot clock. Upper case is what its tree got, one letter a second,
// a dot for nothing.
func TestWhenARunEnds(t *testing.T) {
	t.Parallel()
	type at map[int]func(*run)
	stop := func(r *run) { r.abandoned = true }
	extend := func(stopAt, deadline int) func(*run) {
		return func(r *run) { r.stopAt, r.deadline = seconds(stopAt), seconds(deadline) }
	}
	exit := func(r *run) { r.reaped(0) }
	for name, c := range map[string]struct {
		timeout, killAfter, stopAt, deadline int
		events                               at
		want                                 string
		cause                                Cause
	}{
		"deadline":                       {0, 2, 5, 7, nil, ".....T.KKK", CauseDeadline},
		"no grace left":                  {0, 2, 5, 5, nil, ".....KKKKK", CauseDeadline},
		"StopAt after Deadline":          {0, 2, 9, 5, nil, ".....KKKKK", CauseDeadline},
		"timeout":                        {3, 2, 20, 20, nil, "...T.KKKKK", CauseTimeout},
		"timeout, deadline is earlier":   {3, 9, 5, 6, nil, "...T..KKKK", CauseTimeout},
		"timeout without grace":          {3, 0, 20, 20, nil, "...TKKKKKK", CauseTimeout},
		"stop":                           {0, 2, 20, 20, at{4: stop}, "....T.KKKK", CauseStopped},
		"stop, deadline is earlier":      {0, 9, 20, 6, at{4: stop}, "....T.KKKK", CauseStopped},
		"extended":                       {0, 2, 3, 4, at{2: extend(6, 8)}, "......T.KK", CauseDeadline},
		"extended too late":              {0, 2, 3, 6, at{4: extend(20, 20)}, "...T..KKKK", CauseDeadline},
		"shortened":                      {0, 2, 20, 20, at{4: extend(2, 5)}, "....TKKKKK", CauseDeadline},
		"stop, extended":                 {0, 3, 5, 6, at{4: stop, 5: extend(20, 20)}, "....T..KKK", CauseStopped},
		"leftovers":                      {0, 2, 20, 20, at{4: exit}, "....?T.KKK", CauseExited},
		"leftovers, deadline":            {0, 9, 5, 7, at{4: exit}, "....?T.KKK", CauseExited},
		"exit after SIGTERM is not exit": {3, 4, 20, 20, at{5: exit}, "...T.??KKK", CauseTimeout},
		"exit at the timeout is an exit": {3, 4, 20, 20, at{3: exit}, "...T...KKK", CauseExited},
	} {
		tree := &recorder{}
		r := &run{
			spec:   &wireSpec{Timeout: seconds(c.timeout), KillAfter: seconds(c.killAfter)},
			stopAt: seconds(c.stopAt), deadline: seconds(c.deadline),
			phase: phaseRunning, launched: &launched{tree: tree},
			aside: func(action, then func()) { action(); then() },
		}
		var got strings.Builder
		for now := range 10 {
			if f := c.events[now]; f != nil {
				f(r)
			}
			before := tree.log.Len()
			r.step(seconds(now))
			got.WriteString(letter(tree.log.String()[before:]))
		}
		assert.Equal(t, strings.ReplaceAll(c.want, "?", "."), got.String(), name)
		assert.Equal(t, c.cause, r.cause, name)
	}
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

func letter(log string) string {
	if log == "" {
		return "."
	}
	return log[:1]
}
