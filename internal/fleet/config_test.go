package fleet

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Job is a job of a fleet: the recorder with arguments, or another command.
type Job struct {
	Name      string
	Schedule  string   // six fields; empty runs by hand only
	Args      []string // of the recorder
	Command   []string // in its place
	Work      string   // in place of both: a line of YAML with http or sql
	Resource  string
	Overlap   string
	OnLost    string
	KillAfter time.Duration // 0 is 1s
	Keys      []string      // further lines of YAML
}

// Settings are what a test says about the daemons and their jobs.
type Settings struct {
	TTL      time.Duration // 0 is the daemon's default
	Drain    time.Duration // 0 is 5s
	Capacity int           // 0 is the daemon's default
	Top      []string      // further lines of YAML, at the top of the file
	Jobs     []Job
}

// yaml is the configuration file. Strings are written as Go writes them, which YAML reads as double-quoted ones.
func (s Settings) yaml(f *Fleet) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("version: 1")
	if s.TTL > 0 {
		line("lock: {ttl: %s}", s.TTL)
	}
	if s.Capacity > 0 {
		line("capacity: %d", s.Capacity)
	}
	line("drain_timeout: %s", orElse(s.Drain, 5*time.Second))
	for _, top := range s.Top {
		line("%s", top)
	}
	line("jobs:")
	for _, j := range s.Jobs {
		line("  %q:", j.Name)
		if j.Schedule != "" {
			line("    seconds: true\n    schedule: %q", j.Schedule)
		}
		if j.Work != "" {
			line("    %s", j.Work)
		} else {
			line("    command: %s", flow(j.command(f)))
			line("    env: {FLEET_DIR: %q, %s: %q, FLEET_JOB: \"yes\"}", f.dir, markName, f.mark)
			line("    kill_after: %s", orElse(j.KillAfter, time.Second))
		}
		for key, value := range map[string]string{"resource": j.Resource, "overlap": j.Overlap, "on_lost": j.OnLost} {
			if value != "" {
				line("    %s: %q", key, value)
			}
		}
		for _, key := range j.Keys {
			line("    %s", key)
		}
	}
	return b.String()
}

// withoutSchedules keeps the jobs, for what is left to do, and makes nothing new due.
func (s Settings) withoutSchedules() Settings {
	s.Jobs = slices.Clone(s.Jobs)
	for i := range s.Jobs {
		s.Jobs[i].Schedule = ""
	}
	return s
}

func (j *Job) command(f *Fleet) []string {
	if j.Command != nil {
		return j.Command
	}
	return append([]string{f.programs.recorder}, j.Args...)
}

func flow(list []string) string {
	quoted := make([]string, len(list))
	for i, s := range list {
		quoted[i] = fmt.Sprintf("%q", s)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

func orElse(d, fallback time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return fallback
}
