package configs

import (
	"fmt"
	"path/filepath"
	"time"
)

// The codes of warnings. They are as stable as those of errors.
const (
	codeFieldCount  = "field-count"  // a schedule that reads as if it had a field more or less than it has
	codeUneven      = "uneven-step"  // a step that does not divide its range
	codeDayFields   = "day-fields"   // both day fields restricted, and nothing says how they go together
	codeClockChange = "clock-change" // fires twice or not at all when clocks change
	codeBusyMinute  = "busy-minute"  // many jobs due in one minute
	codeNeedsRoot   = "needs-root"   // user, and who checks is not root
	codeInShell     = "in-shell"     // a parameter in the text of a shell
	codePlainSecret = "plain-secret" // a secret that the file itself holds
)

// Check is Load, and for a file without a fault it also says what is probably not meant: warnings, nil when there are
// none. The year and the week that they look at begin now. Its error is that of Load.
func Check(path string, o Options, now time.Time) (*Config, *Errors, error) {
	o = o.withDefaults()
	data, err := o.ReadFile(path)
	if err != nil {
		return nil, nil, fmt.Errorf("read configuration: %w", err)
	}
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, nil, fmt.Errorf("find the directory of the configuration: %w", err)
	}
	config, c, err := read(path, filepath.Dir(absolute), data, o)
	if err != nil {
		return nil, nil, err
	}
	c.unprivileged = o.Unprivileged
	return config, c.lint(now), nil
}

// lint looks at schedules that are right, for what people get wrong.
func (c *content) lint(now time.Time) *Errors {
	l := linter{findings: findings{source: c.source, included: c.included}, reader: c.reader, now: now, unprivileged: c.unprivileged}
	l.plainSecrets(c.plain)
	for i, d := range c.jobs {
		l.shellText(d)
		l.account(d)
		s := c.draft.Jobs[i].Schedule
		if s == nil {
			continue
		}
		l.fieldCount(d)
		for item, text := range d.when.texts {
			t := readCron(d.when.nodes[item], text, d.when.seconds)
			l.uneven(t)
			l.dayFields(d, t)
		}
		l.clockChanges(d, s)
	}
	l.busyMinutes(c.jobs, c.draft.Jobs)
	if l.none() {
		return nil
	}
	return l.errors()
}

// linter collects warnings.
type linter struct {
	findings

	reader       *reader
	now          time.Time
	unprivileged bool
}

// warn warns of a part of a scalar.
func (l *linter) warn(n *node, p part, code, format string, args ...any) {
	s, at := l.reader.sourceOf(n), n.at
	if !n.block && !n.loose {
		at = s.within(n.at, n.text, p)
	}
	problem := s.problem(at, code, fmt.Sprintf(format, args...))
	problem.Warning = true
	l.add(problem)
}
