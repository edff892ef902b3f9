package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/configs"
	"github.com/cronlatch/cronlatch/internal/database/dbtest"
	"github.com/cronlatch/cronlatch/internal/dbtime"
	"github.com/cronlatch/cronlatch/scheduler"
)

// What plan says before a reload is what the reload then does.
func TestPlan(t *testing.T) {
	t.Parallel()
	dbtest.EachURL(t, func(t *testing.T, url string) {
		t.Helper()
		const first = "jobs:\n" +
			"  same: {run: date, schedule: \"@yearly\"}\n" +
			"  other: {run: date, schedule: \"@yearly\"}\n" +
			"  gone: {run: date, schedule: \"@yearly\"}\n"
		w, daemon := reloadable(t, url, first, "--watch=false")
		const agreed = "cronlatch: no changes: 1 replica with these definitions\n"
		agrees := func() bool { return w.run(t, "plan").errors == agreed }
		eventually(t, agrees)
		planned := func() bool { return len(changesIn(t, w, "other.yaml")) == 4 }
		w.file(t, "other.yaml", "jobs: {x: {run: date, schedule: \"@daily\"}}\n")
		eventually(t, planned, "the positions of three jobs are written")

		const rest = "  other: {run: date, schedule: \"@monthly\"}\n  new: {run: date, schedule: \"@daily\"}\n"
		w.write(t, "jobs:\n  same: {run: date, schedule: \"0 0 1 1 *\"}\n"+rest)
		got := w.run(t, "plan")
		assert.Equal(t, exitChanges, got.code)
		assert.Equal(t, "cronlatch: 1 replica of 1 with other definitions: a\n", got.errors)
		assert.Regexp(t, `\AJOB +CHANGE +NEXT +PLANNED UNTIL\ngone +remove +\S+ \S+Z\n`+
			`new +add +2026-03-09 00:00:00Z \(in 19h\)\n`+
			`other +reschedule +2026-04-01 00:00:00Z \(in 23d19h\) +\S+ \S+Z\n\z`, got.out)
		w.run(t, "plan", "-o", "name").says(t, exitChanges, "gone\nnew\nother\n", got.errors)

		require.Equal(t, exitOK, w.run(t, "reload").code)
		eventually(t, agrees)
		w.run(t, "plan").says(t, exitOK, "", agreed)
		w.run(t, "plan", "-o", "json").says(t, exitOK, "[]\n", agreed)

		w.write(t, "jobs:\n  same: {run: uptime, schedule: \"0 0 1 1 *\"}\n"+rest)
		assert.Equal(t, exitChanges, w.run(t, "plan").code, "a command differs")
		daemon.leave(t)
		assert.Contains(t, w.run(t, "plan").errors, "no replica is up; this is against what was planned before")
	})
}

func changesIn(t *testing.T, w *world, file string) []map[string]any {
	t.Helper()
	return decode[[]map[string]any](t, w.run(t, "plan", "--config", file, "-o", "json").out)
}

func TestPlanNeedsAGoodFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.env["DATABASE_URL"] = dbtest.SQLiteURL(t)
	w.write(t, "jobs: {a: {rum: x}}\n")
	assert.Equal(t, exitConfig, w.run(t, "plan").code)
	w.write(t, "jobs: {}\n")
	w.run(t, "plan").says(t, exitOK, "", "cronlatch: no replica is up; this is against what was planned before\ncronlatch: no changes of schedules\n")
}

// A schedule that was there before and comes back goes on, and is no change; a disabled job is one like others.
func TestPlanChanges(t *testing.T) {
	t.Parallel()
	const file = "jobs:\n  back: {run: x, schedule: \"@daily\"}\n  by-hand: {run: x}\n" +
		"  off: {run: x, schedule: \"@daily\", enabled: false}\n"
	config, err := configs.Parse("f", []byte(file), configs.Options{})
	require.NoError(t, err)
	back, err := config.Job("back")
	require.NoError(t, err)
	at := func(hour int) dbtime.Time { return dbtime.Time{Time: testNow().Add(time.Duration(hour) * time.Hour)} }
	changes := planChanges(config, []scheduler.PositionRow{
		{Job: "back", Hash: "another", Position: at(-1)},
		{Job: "back", Hash: back.Schedule.Hash(), Position: at(-2)},
		{Job: "by-hand", Hash: "x", Position: at(-3)},
	}, testNow())
	require.Len(t, changes, 2)
	assert.Equal(t, "by-hand remove", changes[0].Job+" "+changes[0].Change, "it has no schedule any more")
	assert.Equal(t, at(-3).UTC(), *changes[0].Since)
	assert.Equal(t, "off add", changes[1].Job+" "+changes[1].Change)
	assert.Nil(t, changes[1].Next)
}
