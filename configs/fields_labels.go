package configs

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/cronlatch/cronlatch/jobs"
)

func labelFields() []field[daemonDraft] {
	return []field[daemonDraft]{{
		key: "labels", env: "CRONLATCH_LABELS", doc: "What this replica is, for `only_on` of jobs: `{disk: fast, zone: a}`; in the variable `disk=fast,zone=a`. Labels are no part of the definitions: replicas differ in them.",
		bind: func(d *daemonDraft) sink { return labels{&d.Labels} },
	}}
}

func onlyOnFields() []field[jobDraft] {
	return []field[jobDraft]{{
		key: "only_on", shared: true, doc: "The labels that a replica must have to run the job, all of them: `{disk: fast}`, or `{zone: [a, b]}` for one of several values. When there is no such replica until `start_deadline`, the run is missed.",
		bind: func(d *jobDraft) sink { return onlyOn{&d.policies.onlyOn} },
	}}
}

// labels is a sink for the labels of a replica: a map, or in a variable or a flag one text.
type labels struct{ into *map[string]string }

const labelsShape = "{disk: fast}"

func (labels) empty() string { return "{}" }

func (s labels) read(r *reader, n *node, name string) {
	switch {
	case n.kind == kindText && n.from != "":
		s.readText(r, n, name)
		return
	case n.kind != kindMap:
		r.refuse(n, codeType, "%s must be a map such as %s, not %s", name, labelsShape, n.describe())
		return
	}
	var all map[string]string
	for _, p := range n.pairs {
		if !r.spend() {
			return
		}
		if !r.isLabel(p.key, name) {
			continue
		}
		if value, ok := r.labelValue(p.value, fmt.Sprintf("%s.%s", name, abbreviate(p.key.text))); ok {
			all = withLabel(all, p.key.text, value)
		}
	}
	*s.into = all
}

// readText reads "disk=fast,zone=a".
func (s labels) readText(r *reader, n *node, name string) {
	var all map[string]string
	for item := range strings.SplitSeq(n.text, ",") {
		label, value, ok := strings.Cut(strings.TrimSpace(item), "=")
		switch _, twice := all[label]; {
		case !ok:
			r.refuse(n, codeLabel, "%s must look like disk=fast,zone=a, not %s", name, shown(n))
			return
		case !labelPattern.MatchString(label) || !labelPattern.MatchString(value):
			r.refuse(n, codeLabel, "%s has the item %q; a label and its value have %s", name, abbreviate(item), labelRule)
			return
		case twice:
			r.refuse(n, codeLabel, "%s has the label %q twice; remove one of them", name, label)
			return
		}
		all = withLabel(all, label, value)
	}
	*s.into = all
}

func withLabel(all map[string]string, label, value string) map[string]string {
	if all == nil {
		all = map[string]string{}
	}
	all[label] = value
	return all
}

var labelPattern = regexp.MustCompile(`^[A-Za-z0-9._/-]{1,63}$`)

const labelRule = "1 to 63 of the characters A-Z a-z 0-9 . _ / -"

// isLabel reports whether a key is the name of a label; when not, it says so.
func (r *reader) isLabel(key *node, name string) bool {
	switch {
	case key.kind != kindText: // reported with the tree
		return false
	case !labelPattern.MatchString(key.text):
		r.refuse(key, codeLabel, "%q in %s is no label; a label has %s", abbreviate(key.text), name, labelRule)
		return false
	}
	return true
}

func (r *reader) labelValue(n *node, name string) (string, bool) {
	value, ok := r.text(n, name, false)
	if ok && !labelPattern.MatchString(value.text) {
		r.refuse(n, codeLabel, "%s must have %s, not %s", name, labelRule, shown(n))
		return "", false
	}
	if !ok {
		return "", false
	}
	return value.text, true
}

// onlyOn is a sink for the labels that a job asks for. It takes the place of what defaults say.
type onlyOn struct{ into *jobs.Labels }

func (onlyOn) empty() string { return "{}" }

func (s onlyOn) read(r *reader, n *node, name string) {
	if n.kind != kindMap {
		r.refuse(n, codeType, "%s must be a map such as %s or {zone: [a, b]}, not %s", name, labelsShape, n.describe())
		return
	}
	var all jobs.Labels
	for _, p := range n.pairs {
		if !r.spend() {
			return
		}
		if !r.isLabel(p.key, name) {
			continue
		}
		if values := r.labelValues(p.value, fmt.Sprintf("%s.%s", name, abbreviate(p.key.text))); values != nil {
			if all == nil {
				all = jobs.Labels{}
			}
			all[p.key.text] = values
		}
	}
	*s.into = all
}

// labelValues is one value or a list of them, sorted: their order means nothing. nil when something is wrong.
func (r *reader) labelValues(n *node, name string) []string {
	if n.kind != kindList {
		if value, ok := r.labelValue(n, name); ok {
			return []string{value}
		}
		return nil
	}
	if len(n.items) == 0 {
		r.refuse(n, codeEmpty, "%s is an empty list, which no replica can match; give it an item, or remove the label", name)
		return nil
	}
	var values []string
	for _, item := range n.items {
		if !r.spend() {
			return nil
		}
		value, ok := r.labelValue(item, "an item of "+name)
		if !ok {
			return nil
		}
		values = append(values, value)
	}
	slices.Sort(values)
	return slices.Compact(values)
}
