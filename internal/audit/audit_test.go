package audit_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"github.com/cronlatch/cronlatch/internal/audit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixed is zap's clock at one instant.
type fixed time.Time

func (f fixed) Now() time.Time                       { return time.Time(f) }
func (fixed) NewTicker(d time.Duration) *time.Ticker { return time.NewTicker(d) }

// sink keeps each Write apart, to see that a line is one write.
type sink struct {
	mu     sync.Mutex
	writes [][]byte
}

func (s *sink) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes = append(s.writes, bytes.Clone(b))
	return len(b), nil
}

func (*sink) Sync() error { return nil }

func (s *sink) all() []byte { return bytes.Join(s.writes, nil) }

func TestGoldenLine(t *testing.T) {
	t.Parallel()
	var out sink
	at := time.Date(2026, 5, 1, 8, 0, 0, 120, time.FixedZone("CEST", 2*60*60))
	log := audit.New(&out).WithOptions(zap.WithClock(fixed(at)))
	audit.Log(log, audit.LockTakeover, audit.Success,
		audit.Actor(audit.ActorReplica, "b"), audit.Job("report:monthly-YYYY-MM"), audit.RunID(17),
		audit.ScheduledAt(at), audit.Resource("report:monthly-2026-05"), audit.Owner("b/1f/17/1"),
		audit.Token(9007199254740991), audit.Replica("b"), audit.Reason("expired"))
	golden, err := os.ReadFile("testdata/takeover.json") // byte by byte, not as JSON: the order and the form are what people read
	require.NoError(t, err)
	assert.Equal(t, string(golden), string(out.all()))
}

func TestObservedFields(t *testing.T) {
	t.Parallel()
	core, logs := observer.New(zapcore.InfoLevel)
	log := zap.New(core)
	audit.Log(log, audit.RunFinish, audit.Success, audit.RunOutcome("succeeded"))
	audit.Log(log, audit.LockRenewFail, audit.Unknown, audit.Err(errors.New("no answer")))
	audit.Log(log, audit.ConfigReject, audit.Failure)

	got := logs.AllUntimed()
	require.Len(t, got, 3)
	assert.Equal(t, "run finish", got[0].Message)
	assert.Equal(t, zapcore.InfoLevel, got[0].Level)
	assert.Equal(t, map[string]any{"event.action": "run.finish", "event.outcome": "success", "run.outcome": "succeeded"}, got[0].ContextMap())
	assert.Equal(t, "lock renew fail", got[1].Message)
	assert.Equal(t, zapcore.WarnLevel, got[1].Level, "what did not go well stands out")
	assert.Equal(t, map[string]any{"event.action": "lock.renew_fail", "event.outcome": "unknown", "error": "no answer"}, got[1].ContextMap())
	assert.Equal(t, "failure", got[2].ContextMap()["event.outcome"])
}

// A resource, a reason, an actor may say anything: it stays one line, valid JSON, with the value exact and nothing
// that a terminal obeys.
func TestTextFromUsersNeverShapesALine(t *testing.T) {
	t.Parallel()
	for _, evil := range []string{
		"a\nb", "\r\n{\"event.action\":\"run.finish\"}", "\x1b[2J\x1b]0;owned\x07", "\u009b2J", "\x7f", "\u2028\u2029\u0085",
		"\u202etxt.exe", "\",\"event.outcome\":\"success", "\U000e0041",
	} {
		var out sink
		audit.Log(audit.New(&out), audit.RunTrigger, audit.Failure, audit.Actor(audit.ActorUser, evil), audit.Job(evil),
			audit.Resource(evil), audit.Owner(evil), audit.Replica(evil), audit.Reason(evil), audit.Err(errors.New(evil)))
		line := string(out.all())
		require.Equal(t, 1, strings.Count(line, "\n"), "%q", line)
		require.True(t, strings.HasSuffix(line, "\n"))
		for _, acting := range []string{"\r", "\x1b", "\u009b", "\x7f", "\u2028", "\u202e", "\u0085", "\U000e0041"} {
			assert.NotContains(t, line, acting)
		}
		var got map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &got))
		for _, key := range []string{"actor.id", "job", "resource", "owner", "replica", "reason", "error"} {
			assert.Equal(t, evil, got[key], key)
		}
		assert.Equal(t, "run trigger", got["msg"])
		assert.Equal(t, "failure", got["event.outcome"])
	}
}

func TestConcurrentLinesAreWhole(t *testing.T) {
	t.Parallel()
	const writers, each = 8, 250
	var out sink
	log := audit.New(&out)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				audit.Log(log, audit.RunClaim, audit.Success, audit.RunID(int64(w*each+i)), audit.Reason(strings.Repeat("x", i)))
			}
		})
	}
	wg.Wait()
	require.Len(t, out.writes, writers*each, "a line is one write, so that several processes may share a file")
	seen := map[int64]bool{}
	for _, line := range out.writes {
		var got struct {
			ID int64 `json:"run.id"`
		}
		require.NoError(t, json.Unmarshal(line, &got), "%s", line)
		seen[got.ID] = true
	}
	assert.Len(t, seen, writers*each)
}

// zap's production preset keeps the first 100 equal lines of a second and then one in 100.
func TestNothingIsSampled(t *testing.T) {
	t.Parallel()
	const lines = 10_000
	var out sink
	log := audit.New(&out)
	for range lines {
		audit.Log(log, audit.LockAcquire, audit.Success, audit.Resource("same"))
	}
	count := 0
	for scan := bufio.NewScanner(bytes.NewReader(out.all())); scan.Scan(); {
		count++
	}
	assert.Equal(t, lines, count)
}

// A full disk loses lines and does not stop the caller.
func TestABrokenWriterIsSurvived(t *testing.T) {
	t.Parallel()
	var complaints sink
	log := audit.New(zapcore.AddSync(brokenDisk{})).WithOptions(zap.ErrorOutput(&complaints))
	audit.Log(log, audit.LockAcquire, audit.Success)
	assert.Contains(t, string(complaints.all()), "no space left")
}

type brokenDisk struct{}

func (brokenDisk) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestFormatTimeHasNineDigits(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "2026-05-01T00:00:00.000000000Z", audit.FormatTime(time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC)))
	assert.Equal(t, "2026-04-30T22:00:00.500000000Z",
		audit.FormatTime(time.Date(2026, 5, 1, 0, 0, 0, 500_000_000, time.FixedZone("", 2*60*60))))
}

// A list that is written by hand forgets what is added later.
func TestActionsAreAllOfThem(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), "fields.go", nil, 0)
	require.NoError(t, err)
	var declared []audit.Action
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if kind, _ := spec.Type.(*ast.Ident); kind != nil && kind.Name == "Action" {
			text, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			require.NoError(t, err)
			declared = append(declared, audit.Action(text))
		}
		return true
	})
	assert.NotEmpty(t, declared)
	assert.ElementsMatch(t, declared, audit.Actions())
}
