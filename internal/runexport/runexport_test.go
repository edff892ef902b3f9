package runexport_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/runexport"
	"github.com/cronlatch/cronlatch/internal/wire"
)

func sample() wire.Run {
	at := time.Date(2026, 5, 1, 6, 0, 0, 125e6, time.UTC)
	code := -1
	return wire.Run{
		ID: 7, Job: "=cmd|' /C calc'!A0", Occurrence: "s:2026-05-01T06:00:00Z", ScheduledAt: at, Attempt: 1, State: "finished",
		Outcome: new("failed"), Reason: new("exit"), Detail: json.RawMessage(`{"a":"b, \"c\""}`), Trigger: "manual", Replica: new("@a"),
		Resource: "two\nlines", DueAt: at, ExitCode: &code, RequestedBy: new("+1"), Params: map[string]string{"x": "1"},
	}
}

func TestCSV(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	w := runexport.New(&b, runexport.CSV)
	require.NoError(t, w.Write([]wire.Run{sample()}))
	require.NoError(t, w.Write([]wire.Run{sample()}))
	assert.True(t, strings.HasSuffix(b.String(), "\r\n"))
	rows, err := csv.NewReader(&b).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 3, "one header")
	assert.Equal(t, []string{
		"7", "'=cmd|' /C calc'!A0", "s:2026-05-01T06:00:00Z", "2026-05-01T06:00:00.125Z", "1", "finished", "failed", "exit",
		`{"a":"b, \"c\""}`, "manual", "'@a", "two\nlines", "", "2026-05-01T06:00:00.125Z", "", "", "'-1", "", "'+1", `{"x":"1"}`,
	}, rows[1])
	var fields []string
	for f := range reflect.TypeFor[wire.Run]().Fields() {
		fields = append(fields, f.Tag.Get("json"))
	}
	assert.Equal(t, fields, rows[0], "the columns are the fields of the API's object")
}

func TestFormulas(t *testing.T) {
	t.Parallel()
	for first, guarded := range map[string]bool{"=": true, "+": true, "-": true, "@": true, "\t": true, "\r": true, "a": false, "'": false} {
		r := sample()
		r.Job = first + "x"
		var b bytes.Buffer
		require.NoError(t, runexport.New(&b, runexport.CSV).Write([]wire.Run{r}))
		rows, err := csv.NewReader(&b).ReadAll()
		require.NoError(t, err)
		assert.Equal(t, guarded || first == "'", strings.HasPrefix(rows[1][1], "'"), "%q", first) // a CR inside is dropped by the format
	}
}

func TestNothingIsAHeader(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	require.NoError(t, runexport.New(&b, runexport.CSV).Write(nil))
	assert.Equal(t, 1, strings.Count(b.String(), "\r\n"))
	b.Reset()
	require.NoError(t, runexport.New(&b, runexport.NDJSON).Write(nil))
	assert.Empty(t, b.String())
}

func TestNDJSON(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	require.NoError(t, runexport.New(&b, runexport.NDJSON).Write([]wire.Run{sample(), sample()}))
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	require.Len(t, lines, 2)
	var got wire.Run
	require.NoError(t, json.Unmarshal([]byte(lines[1]), &got))
	assert.Equal(t, sample(), got)
}
