package configs

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/cronlatch/cronlatch/internal/resource"
	"github.com/cronlatch/cronlatch/jobs"
)

const hookShape = "{command: [notify, failed]}"

// hookKeys are the keys of a job that derive another job from it.
func hookKeys() []field[jobDraft] {
	var fields []field[jobDraft]
	for _, kind := range jobs.HookKinds() {
		fields = append(fields, field[jobDraft]{
			key: string(kind), doc: hookDoc(kind),
			bind: func(d *jobDraft) sink { return hookMap{&d.chain, kind} },
		})
	}
	return fields
}

func hookDoc(kind jobs.Trigger) string {
	end := map[jobs.Trigger]string{
		jobs.TriggerOnSuccess: "has succeeded",
		jobs.TriggerOnFailure: "has failed, timed out or was lost, after the last attempt",
		jobs.TriggerOnAbort:   "was cancelled",
	}[kind]
	return fmt.Sprintf("A hook: what to run when a run of the job %s. `%s`.", end, hookShape)
}

// hookFields are the keys of a hook: what it runs, and nothing of when and beside what.
func hookFields() []field[jobDraft] {
	keys := append(slices.Clone(workKeys), "env", "secrets", "timeout", "kill_after", "retry")
	fields := slices.DeleteFunc(jobFields(), func(f field[jobDraft]) bool { return !slices.Contains(keys, f.key) })
	for i := range fields {
		switch f := &fields[i]; f.key {
		case "env":
			f.shared, f.doc = false, "Environment variables beside those of the job."
		case "secrets":
			f.doc = "Secret ones beside those of the job."
		case "retry":
			f.shared, f.doc = false, "As for a job, except that defaults do not count: there is one attempt unless the hook itself says otherwise."
		}
	}
	return fields
}

// hookMap is a sink for a hook, which is read when the whole job is known.
type hookMap struct {
	into *chainDraft
	kind jobs.Trigger
}

func (s hookMap) read(r *reader, n *node, name string) {
	if n.kind != kindMap {
		r.refuse(n, codeType, "%s must be a map such as %s, not %s", name, hookShape, n.describe())
		return
	}
	if s.into.hooks == nil {
		s.into.hooks = map[jobs.Trigger]*node{}
	}
	s.into.hooks[s.kind] = n
}

// hooks derives the jobs that are hooks of another one, defined by the map n. base is a job of which nothing is said.
func (r *reader) hooks(of *jobDraft, n *node, base jobDraft) []*jobDraft {
	var drafts []*jobDraft
	for _, kind := range jobs.HookKinds() {
		if value := of.chain.hooks[kind]; value != nil {
			drafts = append(drafts, r.hook(of, kind, keyOf(n, string(kind)), value, base))
		}
	}
	return drafts
}

func (r *reader) hook(of *jobDraft, kind jobs.Trigger, key, n *node, d jobDraft) *jobDraft {
	d.name, d.key = jobs.HookName(of.name, kind), key
	d.env, d.enabled, d.when.timezone, d.resourceOffset = maps.Clone(of.env), of.enabled, of.when.timezone, of.resourceOffset
	d.policies.onlyOn = of.policies.onlyOn
	d.secrets, d.user, d.allowRoot, d.history = of.secrets, of.user, of.allowRoot, of.history
	d.overlap = jobs.OverlapAllow // a hook of a later run does not wait for this one
	d.chain = chainDraft{hookOf: of, after: []afterDraft{{jobs.After{Job: of.name, On: jobs.HookEnd(kind)}, key}}}
	var fault *resource.Error
	if err := resource.Validate(d.name); errors.As(err, &fault) && resource.Validate(of.name) == nil {
		r.refuse(key, codeJobName, "%s is the job %q, whose name %s; give the job a shorter one", kind, abbreviate(d.name), fault.Message)
	}
	d.at = table[jobDraft]{
		fields: hookFields(), where: " in " + d.title(), prefix: string(kind) + ".", hint: hookHint,
	}.read(r, n, &d)
	return &d
}

// plainJob is what hooks start from: no defaults but those that say how long a process may take.
func plainJob(defaults *jobDraft) jobDraft {
	var d jobDraft
	setDefaults(jobFields(), &d)
	d.timeout, d.killAfter = defaults.timeout, defaults.killAfter
	return d
}

// hookHint says more about a key of a job in a hook.
func hookHint(key, where string) string {
	for _, f := range jobFields() {
		if f.key == key {
			return fmt.Sprintf("unknown key %q%s; a hook only has %s", key, where, series(table[jobDraft]{fields: hookFields()}.keys(), "and"))
		}
	}
	return ""
}

// keyOf is the node of a key in a map, and the map when it is not there.
func keyOf(n *node, key string) *node {
	for _, p := range n.pairs {
		if p.key.kind == kindText && p.key.text == key {
			return p.key
		}
	}
	return n
}

// title is how messages call a job, or a hook by its job.
func (d *jobDraft) title() string {
	if d.chain.hookOf != nil {
		_, kind, _ := jobs.SplitHookName(d.name)
		return fmt.Sprintf("%s of job %q", kind, abbreviate(d.chain.hookOf.name))
	}
	return fmt.Sprintf("job %q", abbreviate(d.name))
}

// hookResource is the name that a hook locks: like the job's resource when that has a date, which is then the hook's as
// well, and otherwise like the job. Faults in it are the job's, and reported there.
func (d *jobDraft) hookResource() jobs.Template {
	of := d.chain.hookOf
	_, kind, _ := jobs.SplitHookName(d.name)
	o := jobs.TemplateOptions{Offset: of.resourceOffset, Location: zoneOf(d.when.timezone)}
	if of.resource != "" {
		if t, err := jobs.ParseTemplate(jobs.HookName(of.resource, kind), o); err == nil && t.PeriodForm() != "" {
			return t
		}
	}
	t, err := jobs.ParseTemplate(d.name, o)
	if err != nil {
		return jobs.Template{}
	}
	return t
}
