package httpapi

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cronlatch/cronlatch/internal/typo"
)

// shownBytes is how much of a name that nobody knows is repeated in an answer, and compared with the known ones.
const shownBytes = 64

// maxUnknown is how many names that nobody knows are answered for: a body may have thousands, and the answer would be
// many times its size.
const maxUnknown = 20

// unknownName complains about a name that is not one of the known ones, letter by letter.
func unknownName(name string, known []string) (fieldError, bool) {
	if slices.Contains(known, name) {
		return fieldError{}, false
	}
	if len(name) > shownBytes {
		name = strings.ToValidUTF8(name[:shownBytes], "") + "..."
	}
	return fieldError{Field: name, Code: "unknown", Message: fmt.Sprintf("%q is not known%s", name, suggestion(name, known))}, true
}

// suggestion names the closest of the known names when one is close enough to be meant.
func suggestion(name string, known []string) string {
	best, distance := "", max(2, len(name)/3)+1
	for _, k := range known {
		if d := typo.Distance(strings.ToLower(name), k); d < distance && d < len(k) {
			best, distance = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(", did you mean %q?", best)
}
