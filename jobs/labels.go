package jobs

import "slices"

// Labels say which replicas may run a job: for each label the values that will do.
type Labels map[string][]string

// Match reports whether a replica with these labels may run the job: it has every label, with one of the values.
func (l Labels) Match(replica map[string]string) bool {
	for label, values := range l {
		have, ok := replica[label]
		if !ok || !slices.Contains(values, have) {
			return false
		}
	}
	return true
}
