package jobs

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/resource"
)

func TestOwnResource(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 5, 1, 6, 0, 0, 0, time.UTC)
	assert.Equal(t, "j@s:2026-05-01T06:00:00Z", ownResource("j", ScheduledOccurrence(at)))
	assert.Equal(t, "j@m:42", ownResource("j", ManualOccurrence("42")))

	long := strings.Repeat("ü", 127)
	seen := map[string]bool{}
	for _, occurrence := range []string{"s:1", "s:2", "m:" + strings.Repeat("x", 300), "m:a\nb", "m:\xff"} {
		own := ownResource(long, occurrence)
		require.NoError(t, resource.Validate(own), "%q", own)
		assert.False(t, seen[own], "%q is another occurrence's", own)
		seen[own] = true
	}
	assert.NotEqual(t, ownResource(long+"a", "s:1"), ownResource(long+"b", "s:1"), "names that are cut alike")
}

func TestOverlapAllowLocksANameOfItsOwn(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 5, 1, 6, 0, 0, 0, time.UTC)
	tmpl, err := ParseTemplate("report-YYYY-MM", TemplateOptions{})
	require.NoError(t, err)
	j := &Job{Name: "report-YYYY-MM", Resource: tmpl, Overlap: OverlapAllow}
	assert.Equal(t, "report-2026-05@s:2026-05-01T06:00:00Z", j.ScheduledRun(at).Resource)
	assert.Equal(t, RuleAllow, j.ScheduledRun(at).Overlap)
	assert.Equal(t, "report-2026-05@m:id", ManualRun(TriggerRequest{Job: j, RequestID: "id"}, at).Resource)
	j.Overlap = OverlapSkip
	assert.Equal(t, "report-2026-05", j.ScheduledRun(at).Resource)
}
