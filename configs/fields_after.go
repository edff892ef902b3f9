package configs

import (
	"errors"
	"slices"
	"time"

	"github.com/cronlatch/cronlatch/jobs"
)

// chainDraft is what a job comes after, and what comes after it as a hook.
type chainDraft struct {
	after  []afterDraft
	hooks  map[jobs.Trigger]*node // of the maps; nil when there are none
	hookOf *jobDraft              // the job whose hook this is
	maxAge time.Duration
}

// afterDraft is one job that another one comes after, as it is read.
type afterDraft struct {
	jobs.After

	node *node // of the name
}

const afterShape = "{job: extract, on: success}"

func chainFields() []field[jobDraft] {
	return append([]field[jobDraft]{
		{
			key: "after", doc: "Runs when a run of another job has ended, in place of a schedule: `" + afterShape + "`, or a list for all of several jobs.",
			bind: func(d *jobDraft) sink { return afterList{&d.chain.after} },
		},
		{
			key: "max_age", doc: "How old the last success of the job may become; when it is older, the log warns and `audit_log` gets a row, once for the fleet.",
			bind: func(d *jobDraft) sink { return duration{into: &d.chain.maxAge, min: time.Second} },
		},
	}, hookKeys()...)
}

func afterFields() []field[afterDraft] {
	return []field[afterDraft]{
		{
			key: "job", required: true, doc: "The name of the other job. Variables are not replaced in it.",
			bind: func(a *afterDraft) sink { return remembered{text{into: &a.Job, raw: true}, &a.node} },
		},
		{
			key: "on", initial: string(jobs.AfterSuccess), doc: "success, failure (failed, timed out or lost, after the last attempt) or always (these, and cancelled). Any other end: the run is `skipped`, reason `upstream`.",
			bind: func(a *afterDraft) sink {
				return choice[jobs.AfterOn]{into: &a.On, words: []jobs.AfterOn{jobs.AfterSuccess, jobs.AfterFailure, jobs.AfterAlways}}
			},
		},
	}
}

// afterList is a sink for one map or a list of them.
type afterList struct{ into *[]afterDraft }

func (s afterList) read(r *reader, n *node, name string) {
	items := []*node{n}
	if n.kind == kindList {
		items = n.items
	}
	if len(items) == 0 {
		r.refuse(n, codeEmpty, "%s is an empty list; give it an item, or remove the key", name)
	}
	*s.into = nil
	for _, item := range items {
		if !r.spend() {
			return
		}
		switch {
		case item.kind != kindMap && n.kind == kindList:
			r.refuse(item, codeType, "an item of %s must be a map such as %s, not %s", name, afterShape, item.describe())
			continue
		case item.kind != kindMap:
			r.refuse(item, codeType, "%s must be a map such as %s, or a list of them, not %s", name, afterShape, item.describe())
			continue
		}
		var one afterDraft
		setDefaults(afterFields(), &one)
		table[afterDraft]{fields: afterFields(), where: " in " + name, prefix: name + "."}.read(r, item, &one)
		if one.Job != "" {
			*s.into = append(*s.into, one)
		}
	}
}

// chainOf completes the job.
func (d *jobDraft) chainOf(job *jobs.Job) {
	job.MaxAge = d.chain.maxAge
	for _, a := range d.chain.after {
		job.After = append(job.After, a.After)
	}
	if d.chain.hookOf != nil {
		job.HookOf = d.chain.hookOf.name
	}
}

// link checks how the jobs come after each other. names are those of the jobs in the files, with the faulty ones.
func (r *reader) link(names []string, drafts []*jobDraft, all []*jobs.Job) {
	wrong := len(r.problems)+r.dropped > 0
	var faults jobs.LinkErrors
	if !errors.As(jobs.Link(all), &faults) {
		return
	}
	l := linkReport{reader: r, names: names, drafts: make(map[string]*jobDraft, len(drafts))}
	for _, d := range drafts {
		l.drafts[d.name] = d
	}
	for _, fault := range faults {
		// A faulty definition may have lost what the others would meet by.
		if !wrong || fault.Code != jobs.CodeAfterNever {
			l.report(fault)
		}
	}
}

// linkReport finds the places of faults between jobs.
type linkReport struct {
	*reader

	drafts map[string]*jobDraft
	names  []string // of the jobs in the files
	hints  int
}

func (l *linkReport) report(fault *jobs.LinkError) {
	d := l.drafts[fault.Job]
	if fault.Item < 0 {
		n := d.key
		if at := d.at["schedule"]; at != nil {
			n = at
		}
		l.refuse(n, fault.Code, "%s", fault.Error())
		return
	}
	const mostHints = 20 // each looks at all names
	a, hint := d.chain.after[fault.Item], ""
	switch {
	case l.drafts[a.Job] != nil:
	case slices.Contains(l.names, a.Job):
		return // it is there, and faulty
	case l.hints < mostHints:
		hint = didYouMean(a.Job, l.names)
		l.hints++
	}
	l.refuse(a.node, fault.Code, "%s%s", fault.Error(), hint)
}
