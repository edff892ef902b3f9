package doctor

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cronlatch/cronlatch/locking"
	"github.com/cronlatch/cronlatch/scheduler"
)

// replicaFacts are what the fleet says of itself.
type replicaFacts struct {
	Name, Version, Definitions string
	Silence                    time.Duration
}

func replicasOf(rows []scheduler.ReplicaRow) []replicaFacts {
	all := make([]replicaFacts, len(rows))
	for i := range rows {
		r := &rows[i]
		all[i] = replicaFacts{r.Name, r.Version, r.Hash, r.Silence()}
	}
	return all
}

func judgeReplicas(all []replicaFacts, ttl time.Duration) Finding {
	const check = "replicas"
	var up, silent []string
	versions, definitions := map[string]bool{}, map[string]bool{}
	for _, r := range all {
		if r.Silence > ttl {
			silent = append(silent, r.Name)
			continue
		}
		up = append(up, r.Name)
		versions[r.Version], definitions[r.Definitions] = true, true
	}
	names := strings.Join(up, ", ")
	switch {
	case len(up) == 0 && len(silent) > 0:
		return bad(check, "start `cronlatch serve`; the log of the silent ones says why they ended",
			"no replica is alive; silent: %s", strings.Join(silent, ", "))
	case len(up) == 0:
		return warn(check, "start `cronlatch serve`", "no replica is alive: nothing runs")
	case len(definitions) > 1:
		return warn(check, "give all the same file, and `cronlatch reload`; `cronlatch replicas list` shows who differs",
			"%s do not have the same jobs", names)
	case len(versions) > 1:
		return warn(check, "finish the upgrade", "%s are not of the same version", names)
	case len(silent) > 0:
		return warn(check, "look at their logs; a replica that was killed is forgotten after a day",
			"%s alive; silent: %s", names, strings.Join(silent, ", "))
	case len(up) == 1:
		return good(check, "%s is alive; a second one would take over when it dies", names)
	default:
		return good(check, "%s are alive, with the same jobs", names)
	}
}

func judgeLocks(expired []locking.Record, now time.Time, ttl time.Duration, alive bool) Finding {
	const check = "locks"
	var old []string
	for i := range expired {
		if now.Sub(expired[i].ExpiresAt) > 2*ttl {
			old = append(old, expired[i].Resource)
		}
	}
	slices.Sort(old)
	const shown = 5
	names := strings.Join(old[:min(shown, len(old))], ", ")
	switch {
	case len(old) == 0:
		return good(check, "none was left behind")
	case alive:
		return good(check, "%s left behind by owners that died, free for the next one: %s", counted(len(old), "lock"), names)
	default:
		return warn(check, "start `cronlatch serve`, which finds the runs under them",
			"%s left behind, and no replica looks after what ran under them: %s", counted(len(old), "lock"), names)
	}
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
