package configs

import (
	"fmt"
	"strings"

	"github.com/cronlatch/cronlatch/internal/typo"
)

// didYouMean is `, did you mean "x"?`, or "" when nothing in known is close to what was written.
func didYouMean(written string, known []string) string {
	if best := closest(written, known); best != "" {
		return fmt.Sprintf(", did you mean %q?", best)
	}
	return ""
}

// closest is the known word that needs the fewest edits, if these are few against the length of the word. Case, hyphens
// and underscores cost nothing, so that killAfter and kill-after find kill_after.
func closest(written string, known []string) string {
	if len(written) > 100 { // edit distance is quadratic, and nobody mistypes that much
		return ""
	}
	best, bestDistance := "", len(written)+1
	for _, word := range known {
		a, b := plainWord(written), plainWord(word)
		d, few := typo.Distance(a, b), max(1, max(len(a), len(b))/3)
		if (d <= few || startsWith(a, b)) && d < bestDistance {
			best, bestDistance = word, d
		}
	}
	return best
}

// startsWith says that one word is the other one cut short: warn, warning.
func startsWith(a, b string) bool {
	n := min(len(a), len(b))
	return n >= 3 && a[:n] == b[:n]
}

func plainWord(s string) string {
	return strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(s))
}

// series is "a", "a or b", "a, b or c" with the conjunction or.
func series(words []string, conjunction string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " " + conjunction + " " + words[len(words)-1]
}
