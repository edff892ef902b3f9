package configs

import (
	"slices"
	"time"

	"github.com/cronlatch/cronlatch/jobs"
)

// policyDraft is the part of a jobDraft that says how a job runs beside others and after failures.
type policyDraft struct {
	retry     jobs.Retry
	exitCodes jobs.ExitCodes
	oncePer   jobs.OncePer
	limits    map[string]int // of all tags; the same for all jobs
	onlyOn    jobs.Labels
}

func retryFields() []field[jobs.Retry] {
	return []field[jobs.Retry]{
		{
			key: "attempts", initial: "1", doc: "How many attempts in total, lost ones included; 1 is no retry.",
			bind: func(p *jobs.Retry) sink { return number{&p.Attempts, 1, 100} },
		},
		{
			key: "delay", initial: "10s", doc: "How long to wait before the second attempt, a tenth more or less: what failed together is spread.",
			bind: func(p *jobs.Retry) sink { return duration{into: &p.Delay, min: 0, max: 30 * day} },
		},
		{
			key: "backoff", initial: string(jobs.BackoffExponential), doc: "constant, linear (the delay, twice, three times ...) or exponential (the delay, twice, four times ...).",
			bind: func(p *jobs.Retry) sink {
				return choice[jobs.Backoff]{into: &p.Backoff, words: []jobs.Backoff{jobs.BackoffConstant, jobs.BackoffLinear, jobs.BackoffExponential}}
			},
		},
		{
			key: "max_delay", initial: "1h", doc: "No delay is longer.",
			bind: func(p *jobs.Retry) sink { return duration{into: &p.MaxDelay, min: time.Second, max: 30 * day} },
		},
	}
}

func exitCodeFields() []field[jobs.ExitCodes] {
	return []field[jobs.ExitCodes]{
		{
			key: "success", doc: "Codes that are a success; 0 unless set.",
			bind: func(c *jobs.ExitCodes) sink { return numbers{&c.Success, 0, 255} },
		},
		{
			key: "skip", doc: "Codes by which the command says that there was nothing to do: the run is skipped, not failed, and not tried again.",
			bind: func(c *jobs.ExitCodes) sink { return numbers{&c.Skip, 0, 255} },
		},
	}
}

// checkRetry looks at the policy where it is written; what a job inherits was looked at in defaults.
func checkRetry(r *reader, n *node, p *jobs.Retry) {
	if p.Delay > p.MaxDelay {
		r.refuse(within(n, "delay"), codeConflict, "retry.delay %s is longer than retry.max_delay %s; raise max_delay as well",
			formatDuration(p.Delay), formatDuration(p.MaxDelay))
	}
}

func checkExitCodes(r *reader, n *node, c *jobs.ExitCodes) {
	for _, code := range c.Skip {
		if (jobs.ExitCodes{Success: c.Success}).Outcome(code) == jobs.OutcomeSucceeded {
			r.refuse(within(n, "skip"), codeConflict, "exit code %d is both success and skip; a run ends one way", code)
		}
	}
}

// policies completes the job, and checks what no single key can say.
func (r *reader) policies(d *jobDraft, job *jobs.Job) {
	job.Retry, job.ExitCodes, job.OncePer = d.policies.retry, d.policies.exitCodes, d.policies.oncePer
	job.Limits = limitsOf(d.policies.limits, job.Tags)
	job.OnlyOn = d.policies.onlyOn
	if job.Overlap != jobs.OverlapAllow {
		return
	}
	if n := d.at["resource"]; n != nil {
		r.refuse(n, codeConflict, "job %q has a resource and overlap: allow; runs with one resource wait for each other, so remove one of the two",
			abbreviate(d.name))
	}
	if n := d.at["once_per"]; n != nil && job.OncePer == jobs.OncePerResource {
		r.refuse(n, codeConflict, "job %q has once_per: resource and overlap: allow, which gives each occurrence a resource of its own; remove one of the two",
			abbreviate(d.name))
	}
}

// checked is a group whose values are looked at together, when each of them is right.
type checked[U any] struct {
	group[U]

	check func(r *reader, n *node, into *U)
}

func (c checked[U]) read(r *reader, n *node, name string) {
	before := len(r.problems)
	c.group.read(r, n, name)
	if len(r.problems) == before {
		c.check(r, n, c.into)
	}
}

// within is the value of a key in a map, and the whole when it is not there.
func within(n *node, key string) *node {
	for _, p := range n.pairs {
		if p.key.kind == kindText && p.key.text == key {
			return p.value
		}
	}
	return n
}

// numbers is a sink for a list of different whole numbers within bounds.
type numbers struct {
	into     *[]int
	min, max int
}

func (s numbers) read(r *reader, n *node, name string) {
	switch {
	case n.kind != kindList:
		r.refuse(n, codeType, "%s must be a list of whole numbers such as [%d, %d], not %s", name, s.min, s.min+1, n.describe())
		return
	case len(n.items) == 0:
		r.refuse(n, codeEmpty, "%s is an empty list; give it an item, or remove the key", name)
		return
	}
	before := len(r.problems)
	var values []int
	for _, item := range n.items {
		if !r.spend() {
			return
		}
		v := s.min - 1
		number{&v, s.min, s.max}.read(r, item, "an item of "+name)
		if slices.Contains(values, v) && v >= s.min {
			r.refuse(item, codeConflict, "%s has the item %d twice; remove one of them", name, v)
		}
		values = append(values, v)
	}
	if len(r.problems) == before {
		*s.into = values
	}
}
