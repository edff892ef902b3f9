package jobs

import "strings"

// What a column of the list is compared with: it must be among the one, and not among the other.
const (
	listIn  = "in"
	listNot = "not"
)

// prefixOf is the name of the prefixes that go with a list of texts.
func prefixOf(kind string) string {
	if kind == listNot {
		return "not_prefix"
	}
	return "prefix"
}

// listed are the columns of the list with their values as texts, alike on both databases. What came after another run is
// stored as scheduled, for replicas of the version before.
func listed() [][2]string {
	return [][2]string{
		{"job", "r.job"},
		{"state", "r.state"},
		{"outcome", "coalesce(r.outcome, '')"},
		{"reason", "r.reason"},
		{"trigger", "CASE WHEN r.trigger = 'schedule' AND r.follows <> '{}' THEN r.follows->>'kind' ELSE r.trigger END"},
		{"replica", "r.replica"},
		{"resource", "r.resource"},
		{"id", "CAST(r.id AS text)"},
		{"attempt", "CAST(r.attempt AS text)"},
	}
}

// listConditions are the conditions of all columns, as condition writes one.
func listConditions(condition func(name, value, kind string) string) string {
	var b strings.Builder
	for _, column := range listed() {
		for _, kind := range []string{listIn, listNot} {
			b.WriteString("\n\tAND " + condition(column[0], column[1], kind))
		}
	}
	return b.String()
}

// listColumns are the names of everything that a filter has, each with the type.
func listColumns(kind string) string {
	names := []string{"words " + kind, "not_words " + kind}
	for _, column := range listed() {
		for _, list := range []string{listIn, listNot} {
			names = append(names, column[0]+"_"+list+" "+kind, column[0]+"_"+prefixOf(list)+" "+kind)
		}
	}
	return strings.Join(names, ", ")
}
