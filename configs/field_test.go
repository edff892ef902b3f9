package configs

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestFieldTables keeps the tables fit for a schema and a reference page: each key documented, each default readable by
// its own field, each variable named like its flag.
func TestFieldTables(t *testing.T) {
	t.Parallel()
	assert.Empty(t, setDefaults(daemonFields(), &daemonDraft{}))
	assert.Empty(t, setDefaults(jobFields(), &jobDraft{}))
	walk(daemonFields(), &daemonDraft{}, "", func(l leaf) {
		if l.env != "" {
			flag := strings.TrimPrefix(flagName(l.path), "--")
			if l.path == "labels" {
				flag += "s" // the flag is given for each of them
			}
			assert.Equal(t, "CRONLATCH_"+strings.ToUpper(strings.ReplaceAll(flag, "-", "_")), l.env)
		}
	})
	checkTable(t, daemonFields())
	checkTable(t, databaseFields())
	checkTable(t, authFields())
	checkTable(t, tokenFields())
	checkTable(t, tlsFields())
	checkTable(t, lockFields())
	checkTable(t, logFields())
	checkTable(t, jobFields())
	checkTable(t, catchUpFields())
	checkTable(t, paramFields())
	checkTable(t, notifyFields())
	checkTable(t, channelFields())
	checkTable(t, webhookFields())
	checkTable(t, slackFields())
	checkTable(t, emailFields())
	checkTable(t, historyFields(true))
	checkTable(t, tracingFields())
}

func checkTable[T any](t *testing.T, fields []field[T]) {
	t.Helper()
	seen := map[string]bool{}
	for _, f := range fields {
		assert.False(t, seen[f.key], f.key)
		seen[f.key] = true
		assert.Regexp(t, `^[a-z0-9]+(_[a-z]+)*$`, f.key)
		assert.Regexp(t, `\.$`, f.doc, f.key)
	}
}
