package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

const chain = `
jobs:
  extract:orders: {schedule: "30 2 * * *", resource: orders-YYYY-MM-DD, run: x, max_age: 26h}
  extract:customers: {schedule: "0 3 * * *", resource: customers-YYYY-MM-DD, run: x, enabled: false, on_success: {run: x}}
  load:
    after: [{job: "extract:orders"}, {job: "extract:customers", on: always}]
    description: Both
    run: x
    on_failure: {command: [mail], timeout: 1m}
  off: {after: {job: load, on: failure}, enabled: false, run: x}
`

func TestChainsInTables(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(t, chain)
	table := "" +
		"JOB                           SCHEDULE                                                    ZONE  NEXT                                        DESCRIPTION\n" +
		"extract:customers             0 3 * * *                                                   UTC   disabled\n" +
		"extract:customers#on_success  on success of extract:customers                                   disabled\n" +
		"extract:orders                30 2 * * *                                                  UTC   Mon 2026-03-09 02:30:00 +00:00 (in 21h30m)\n" +
		"load                          after extract:orders (success), extract:customers (always)                                                    Both\n" +
		"load#on_failure               on failure of load\n" +
		"off                           after load (failure)                                              disabled\n"
	w.run(t, "validate").says(t, exitOK, table, "cronlatch: DIR/cronlatch.yaml: valid, 4 jobs and 2 hooks\n")
	w.run(t, "jobs", "list").says(t, exitOK, table, "")
}

func TestChainsInJSON(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(t, "jobs:\n  a: {schedule: \"@daily\", run: x, max_age: 26h}\n  b: {after: {job: a, on: always}, tags: [t], run: x, on_abort: {run: x}}\n")
	w.run(t, "jobs", "list", "--tag", "t", "-o", "json").says(t, exitOK, `[
  {
    "name": "b",
    "description": "",
    "tags": [
      "t"
    ],
    "schedule": null,
    "timezone": null,
    "after": [
      {
        "job": "a",
        "on": "always"
      }
    ],
    "hook_of": null,
    "enabled": true,
    "resource": "b",
    "next": null,
    "overlap": "skip",
    "catch_up": {
      "policy": "latest",
      "window": "1h",
      "max": 100
    },
    "on_lost": "fail",
    "timeout": null,
    "kill_after": "10s",
    "start_deadline": "1h",
    "max_age": null,
    "only_on": null,
    "defined": true,
    "schedule_limits": null,
    "jitter": null,
    "late_after": null,
    "once_per": "occurrence",
    "attempts": 1,
    "limits": {},
    "kind": "run",
    "env": [],
    "secrets": [],
    "params": [],
    "state": null
  }
]
`, "")
	all := w.run(t, "jobs", "list", "-o", "json").out
	assert.Contains(t, all, `"max_age": "26h"`)
	assert.Contains(t, all, `"hook_of": "b"`)
}

func TestNextOfWhatComesAfter(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(t, chain)
	w.run(t, "next", "load").says(t, exitFailure, "",
		"cronlatch: the job \"load\" has no schedule: it runs after extract:orders (success), extract:customers (always)\n"+
			"cronlatch: `cronlatch next extract:orders` shows when that one fires\n")
	w.run(t, "next", "load#on_failure").says(t, exitFailure, "",
		"cronlatch: the job \"load#on_failure\" has no schedule: it runs on failure of load\n"+
			"cronlatch: `cronlatch next extract:orders` shows when that one fires\n")
	w.write(t, "jobs:\n  a: {run: x}\n  b: {after: {job: a}, run: x}\n")
	w.run(t, "next", "b").says(t, exitFailure, "",
		"cronlatch: the job \"b\" has no schedule: it runs after a (success)\ncronlatch: `cronlatch run a` runs a by hand\n")
}
