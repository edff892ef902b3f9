package configs

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cronlatch/cronlatch/jobs"
)

func limitFields() []field[daemonDraft] {
	return []field[daemonDraft]{{
		key: "limits", doc: "How many runs of jobs with a tag the whole fleet has at a time: `{database: 2}`. What is due beyond that waits, until `start_deadline`.",
		bind: func(d *daemonDraft) sink { return tagLimits{&d.limits} },
	}}
}

// tagLimits is a sink for a map from tags to numbers.
type tagLimits struct{ into *map[string]int }

func (tagLimits) empty() string { return "{}" }

func (s tagLimits) read(r *reader, n *node, name string) {
	if n.kind != kindMap {
		r.refuse(n, codeType, "%s must be a map from tags to numbers such as {database: 2}, not %s", name, n.describe())
		return
	}
	limits := make(map[string]int, len(n.pairs))
	for _, p := range n.pairs {
		if !r.spend() {
			return
		}
		switch {
		case p.key.kind != kindText: // reported with the tree
		case strings.TrimSpace(p.key.text) == "":
			r.refuse(p.key, codeEmpty, "a tag in %s is empty; give it a name, or remove it", name)
		default:
			limit := 0
			number{&limit, 1, 10_000}.read(r, p.value, fmt.Sprintf("%s.%s", name, abbreviate(p.key.text)))
			limits[p.key.text] = limit
		}
	}
	*s.into = limits
}

// limitsOf are the limits of a job with the given tags; nil when there are none.
func limitsOf(all map[string]int, tags []string) map[string]int {
	var own map[string]int
	for _, tag := range tags {
		limit, ok := all[tag]
		if ok && own == nil {
			own = map[string]int{}
		}
		if ok {
			own[tag] = limit
		}
	}
	return own
}

// checkLimits refuses the limit of a tag that no job has: it limits nothing, which nobody would notice.
func (r *reader) checkLimits(n *node, all []*jobs.Job) {
	if n == nil || n.kind != kindMap {
		return
	}
	tags := map[string]bool{}
	for _, j := range all {
		for _, tag := range j.Tags {
			tags[tag] = true
		}
	}
	for _, p := range n.pairs {
		if tag := p.key.text; p.key.kind == kindText && strings.TrimSpace(tag) != "" && !tags[tag] {
			r.refuse(p.key, codeConflict, "no job has the tag %q%s; a limit needs jobs that it is for", abbreviate(tag),
				didYouMean(tag, slices.Sorted(maps.Keys(tags))))
		}
	}
}
