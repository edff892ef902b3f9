package check

import "strings"

// alarms are what no log of a healthy daemon contains, whatever happens around it.
func alarms() []string {
	return []string{
		"panic:", "fatal error:", "goroutine 1 [", "WARNING: DATA RACE", "runtime error", "all goroutines are asleep",
	}
}

// Log checks a daemon's output: no panic, no race report, and none of the secrets that were given to it.
func Log(text string, secrets ...string) error {
	var p problems
	for n, line := range strings.Split(text, "\n") {
		for _, alarm := range alarms() {
			if strings.Contains(line, alarm) {
				p.add("line %d: %s", n+1, line)
			}
		}
		for i, secret := range secrets {
			if strings.Contains(line, secret) {
				p.add("line %d contains secret %d", n+1, i+1) // the line itself would pass the secret on
			}
		}
	}
	return p.err()
}
