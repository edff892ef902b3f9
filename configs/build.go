package configs

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/cronlatch/cronlatch/internal/resource"
	"github.com/cronlatch/cronlatch/jobs"
)

// defaults is the draft that the jobs of a file start from: those of the file that includes it, and its own.
func (r *reader) defaults(n *node, d jobDraft) jobDraft {
	if n != nil {
		table[jobDraft]{fields: sharedFields(), where: " in defaults", hint: defaultsHint}.read(r, n, &d)
	}
	return d
}

// drafts reads the map of jobs, sorted by name. Jobs that are no map are reported and left out.
func (r *reader) drafts(n *node, defaults jobDraft) []*jobDraft {
	if n == nil {
		return nil
	}
	var drafts []*jobDraft
	fields, plain := jobFields(), plainJob(&defaults)
	for _, p := range n.pairs {
		if !r.spend() {
			break
		}
		if p.key.kind != kindText {
			continue // reported with the tree
		}
		if !r.checkJobName(p.key) {
			continue
		}
		if p.value.kind != kindMap {
			r.notAJob(p)
			continue
		}
		draft := defaults
		draft.name, draft.key, draft.env = p.key.text, p.key, maps.Clone(defaults.env)
		draft.at = table[jobDraft]{
			fields: fields, where: fmt.Sprintf(" in job %q", abbreviate(p.key.text)), hint: jobHint,
		}.read(r, p.value, &draft)
		drafts = append(append(drafts, &draft), r.hooks(&draft, p.value, plain)...)
	}
	sortDrafts(drafts)
	return drafts
}

func sortDrafts(drafts []*jobDraft) {
	slices.SortStableFunc(drafts, func(a, b *jobDraft) int { return cmp.Compare(a.name, b.name) })
}

// checkJobName is false for a name that a hook would have.
func (r *reader) checkJobName(key *node) bool {
	if _, kind, ok := jobs.SplitHookName(key.text); ok {
		r.refuse(key, codeJobName, "a name that ends in #%s is that of a hook; write %s into the job itself, or take another name", kind, kind)
		return false
	}
	var fault *resource.Error
	if err := resource.Validate(key.text); errors.As(err, &fault) {
		r.refusePart(key, part{fault.Offset, 0}, codeJobName, "the job's name "+fault.Message)
	}
	return true
}

func (r *reader) notAJob(p pair) {
	switch {
	case p.value.kind == kindNull && p.value.loose:
	case p.value.kind == kindNull:
		r.refuse(p.key, codeEmpty, "job %q is empty; give it a command or run, or remove it", abbreviate(p.key.text))
	default:
		r.refuse(p.value, codeType, `job %q must be a map such as {schedule: "@daily", run: "./backup.sh"}, not %s`, abbreviate(p.key.text), p.value.describe())
	}
}

// build checks a draft as a whole and makes the job. The result counts only when no problem was found.
func (r *reader) build(d *jobDraft) *jobs.Job {
	r.checkWhatRuns(d)
	job := &jobs.Job{
		Name: d.name, Description: d.description, Tags: d.tags,
		Command: d.command, Run: d.run, Env: d.env, Secrets: d.secrets, User: d.user, AllowRoot: d.allowRoot,
		Timeout: d.timeout, KillAfter: d.killAfter, StartDeadline: d.startDeadline,
		Overlap: d.overlap, CatchUp: d.catchUp, OnLost: d.onLost, Enabled: d.enabled,
	}
	r.policies(d, job)
	d.chainOf(job)
	job.Schedule, job.Jitter = r.schedule(d), d.when.jitter
	job.Resource = r.resource(d)
	job.Params, job.History = r.params(d), d.history
	r.hear(d, job)
	r.work(d, job)
	return job
}

// asRead is the node with the text that was read from it: places inside it are known only when no variable was replaced.
func (*reader) asRead(n *node, text string) *node {
	read := *n
	read.loose = read.loose || read.text != text
	read.text = text
	return &read
}

// resource makes the name that the job locks: its own unless it says otherwise.
func (r *reader) resource(d *jobDraft) jobs.Template {
	if d.chain.hookOf != nil {
		return d.hookResource()
	}
	name, n := d.resource, d.at["resource"]
	if name == "" {
		if n != nil {
			return jobs.Template{} // reported when it was read
		}
		name, n = d.name, d.key
		if resource.Validate(name) != nil {
			return jobs.Template{} // reported as the job's name
		}
	} else {
		n = r.asRead(n, name)
		var fault *resource.Error
		if err := resource.Validate(name); errors.As(err, &fault) {
			r.refusePart(n, part{fault.Offset, 0}, codeResource, "the resource's name "+fault.Message)
			return jobs.Template{}
		}
	}
	t, err := jobs.ParseTemplate(name, jobs.TemplateOptions{Offset: d.resourceOffset, Location: zoneOf(d.when.timezone)})
	var fault *jobs.TemplateError
	switch {
	case err == nil:
	case errors.As(err, &fault) && fault.Code == jobs.CodeResourceOffset && d.at["resource_offset"] != nil:
		r.refusePart(r.asRead(d.at["resource_offset"], d.resourceOffset), part{fault.Offset, fault.Length}, fault.Code, fault.Message)
	case errors.As(err, &fault):
		r.refusePart(n, part{fault.Offset, fault.Length}, fault.Code, fault.Message)
	default:
		r.refuse(n, codeResource, "%s", err.Error())
	}
	return t
}
