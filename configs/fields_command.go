package configs

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cronlatch/cronlatch/jobs"
)

func commandFields() []field[jobDraft] {
	return []field[jobDraft]{
		{
			key: "command", doc: "The program and its arguments; no shell. {{ .Period }}, {{ .ScheduledAt }}, {{ .Resource }} and {{ .Params.NAME }} are replaced.",
			bind: func(d *jobDraft) sink { return list{into: &d.command, nodes: &d.commandNodes, raw: true, blank: true} },
		},
		{
			key: "run", doc: "A text for /bin/sh -c, instead of command. Nothing in it is replaced.",
			bind: func(d *jobDraft) sink { return text{into: &d.run, raw: true} },
		},
		{
			key: "http", doc: "A request, instead of command.",
			bind: func(d *jobDraft) sink { return group[httpDraft]{httpFields(), &d.http, httpShape} },
		},
		{
			key: "sql", doc: "A transaction, instead of command.",
			bind: func(d *jobDraft) sink { return sqlGroup{&d.sql} },
		},
		{
			key: "env", shared: true, doc: "Environment variables of the process, beside the few that every job has.",
			bind: func(d *jobDraft) sink { return dictionary{into: &d.env, check: checkVariableName} },
		},
		{
			key: "timeout", initial: "0s", shared: true, doc: "How long a run may take; 0s is no limit.",
			bind: func(d *jobDraft) sink { return duration{into: &d.timeout} },
		},
		{
			key: "kill_after", initial: "10s", shared: true, doc: "How long a process that was asked to stop may go on before it is killed.",
			bind: func(d *jobDraft) sink { return duration{&d.killAfter, 0, time.Hour} },
		},
	}
}

func checkVariableName(name string) error {
	switch {
	case name == "" || strings.ContainsAny(name, "=\x00"):
		return fmt.Errorf("%q cannot be the name of an environment variable; it must not be empty and holds no \"=\"", abbreviate(name))
	case strings.HasPrefix(name, "CRONLATCH_"):
		return fmt.Errorf("%s cannot be set: every run gets its own variables CRONLATCH_*", abbreviate(name))
	}
	return nil
}

// workKeys are the keys that say what a job runs. Exactly one of them is set.
//
//nolint:gochecknoglobals // a closed list
var workKeys = []string{"command", "run", "http", "sql"}

// checkWhatRuns wants exactly one of workKeys.
func (r *reader) checkWhatRuns(d *jobDraft) {
	var given []string
	named := false
	for _, key := range workKeys {
		named = named || d.at.has(key)
		if d.at[key] != nil {
			given = append(given, key)
		}
	}
	switch {
	case !named:
		r.refuse(d.key, codeRequired, "%s runs nothing; give it a command (a list, without shell), run (a text for the shell), http or sql", d.title())
	case len(given) > 1:
		first := d.at[given[0]]
		for _, key := range given[1:] {
			r.refuse(d.at[key], codeConflict, "%s has both %s (line %d) and %s; remove one of them", d.title(), given[0], first.at.line, key)
		}
	case len(d.command) > 0 && d.command[0] == "":
		r.refuse(d.commandNodes[0], codeEmpty, "the first item of command names the program, and it is empty")
	}
	r.checkSecrets(d)
	if len(given) == 1 && (given[0] == "http" || given[0] == "sql") {
		r.checkNoProcess(d, given[0])
		return
	}
	r.account(d)
}

// checkNoProcess refuses what only a process has. Values from defaults are for the jobs that have one.
func (r *reader) checkNoProcess(d *jobDraft, work string) {
	for _, key := range []string{"env", "exit_codes", "secrets", "user", "allow_root"} {
		if n := d.at[key]; n != nil {
			r.refuse(n, codeConflict, "%s is for command and run; a job with %s has no process", key, work)
		}
	}
}

// work makes what the job runs, when its resource is known: there is a .Period only with a date in it.
func (r *reader) work(d *jobDraft, job *jobs.Job) {
	_, period := job.Resource.Period(time.Time{})
	period = period || job.Resource.String() == "" // an unreadable resource is one problem, not two
	tokens := jobs.Tokens{Period: period, Params: job.Params}
	for i, arg := range d.command {
		r.checkTokens(d.commandNodes[i], arg, tokens)
	}
	job.HTTP, job.SQL = r.http(d, tokens), r.sql(d, tokens)
	if job.HTTP != nil || job.SQL != nil {
		job.Env, job.ExitCodes = nil, jobs.ExitCodes{}
		job.Secrets, job.User, job.AllowRoot = nil, "", false
	}
}

// checkTokens looks at every {{ ... }} of a text.
func (r *reader) checkTokens(n *node, text string, tokens jobs.Tokens) {
	var fault *jobs.TokenError
	if err := jobs.CheckArg(text, tokens); errors.As(err, &fault) {
		r.refusePart(n, part{fault.Offset, fault.Length}, codeTemplate, fault.Message)
	}
}
