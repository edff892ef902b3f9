package configs

import (
	"fmt"
	"slices"
	"strings"
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
		d, few := distance(a, b), max(1, max(len(a), len(b))/3)
		if (d <= few || startsWith(a, b)) && d < bestDistance {
			best, bestDistance = word, d
		}
	}
	return best
}

// startsWith says that one word is the other one cut short: warn, warning.
func startsWith(a, b []rune) bool {
	n := min(len(a), len(b))
	return n >= 3 && slices.Equal(a[:n], b[:n])
}

func plainWord(s string) []rune {
	return []rune(strings.NewReplacer("-", "", "_", "").Replace(strings.ToLower(s)))
}

// distance counts insertions, deletions, substitutions and swaps of neighbors (optimal string alignment).
func distance(a, b []rune) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}

// series is "a", "a or b", "a, b or c" with the conjunction or.
func series(words []string, conjunction string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " " + conjunction + " " + words[len(words)-1]
}
