package demo

import (
	"fmt"
	"time"

	"github.com/cronlatch/cronlatch/configs"
)

const (
	configName   = "cronlatch.yaml"
	databaseName = "cronlatch.db"

	// lockTTL is short, so that nobody waits long for a takeover; and long enough for a machine that is busy.
	lockTTL = 5 * time.Second
)

// The names of the jobs that the history tells stories about.
const (
	jobBackup  = "backup:db"
	jobReport  = "report:monthly-YYYY-MM"
	jobSync    = "sync:orders"
	jobCleanup = "cleanup:tmp"
	jobPartner = "check:partner-api"
	jobIndex   = "index:search"
)

// indexShards is how many shards the command of jobIndex goes through.
const indexShards = 12

// configText is the demo's configuration. Its commands need nothing but sh.
const configText = `# The configuration of a demo. Play with it: a change is picked up at once.
version: 1
database: {url: "sqlite:` + databaseName + `"}
listen: 127.0.0.1:8420
auth: none
lock: {ttl: 5s}
drain_timeout: 2s
defaults: {kill_after: 1s, timeout: 10m}
jobs:
  ` + jobBackup + `:
    description: Nightly backup of the database
    tags: [ops]
    schedule: "30 2 * * *"
    timezone: Europe/Berlin
    run: |
      echo "dumping orders"; sleep 2
      echo "dumping customers"; sleep 2
      echo "done: 2 tables"
    timeout: 30m
    catch_up: {policy: none}
    on_lost: retry
    retry: {attempts: 2, delay: 1m}
    max_age: 26h
  ` + jobReport + `:
    description: Revenue of the month before
    tags: [finance]
    schedule: "0 6 1 * *"
    timezone: Europe/Berlin
    resource_offset: -1mo
    command: [sh, -c, 'echo "report for $1 is written"', sh, "{{ .Period }}"]
    on_lost: hold
  ` + jobSync + `:
    description: Fetch new orders
    tags: [shop]
    schedule: "* * * * *"
    run: echo "fetched $(date +%S) orders"; sleep 1
    timeout: 2m
    history: {keep_for: 2d}
  ` + jobCleanup + `:
    description: Remove old temporary files
    tags: [ops]
    schedule: H * * * *
    run: echo "nothing is older than a day"
  ` + jobPartner + `:
    description: Does the partner's API answer? Sometimes it does not
    tags: [shop]
    schedule: "*/15 * * * *"
    run: |
      if [ $(( $(date +%M) % 30 )) -eq 0 ] && [ "$CRONLATCH_ATTEMPT" = 1 ]; then
        echo "503 from the partner" >&2; exit 3
      fi
      echo "200"
    retry: {attempts: 2, delay: 20s}
  ` + jobIndex + `:
    description: Rebuild the search index; always busy, so that there is a lock to take over
    tags: [shop]
    schedule: "@every 1m"
    overlap: queue
    history: {keep_for: 2d}
    run: |
      echo "token $CRONLATCH_FENCING_TOKEN, attempt $CRONLATCH_ATTEMPT"
      i=0
      while [ $i -lt 12 ]; do
        i=$((i + 1)); sleep 5; echo "shard $i of 12"
      done
    on_lost: retry
`

// parseConfig is the configuration as it is in the folder.
func parseConfig(path string) (*configs.Config, error) {
	c, err := configs.Parse(path, []byte(configText), configs.Options{})
	if err != nil {
		return nil, fmt.Errorf("reading the demo's configuration: %w", err)
	}
	return c, nil
}
