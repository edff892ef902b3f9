package main

import (
	"fmt"
	"slices"
	"strings"
)

// didYouMean ends a message with the closest of the candidates, when one is close enough to be a typo.
func didYouMean(word, prefix string, candidates []string) string {
	best, distance := "", max(2, len(word)/3)+1
	for _, c := range candidates {
		if d := editDistance(strings.ToLower(word), strings.ToLower(c)); d < distance && d < len(c) {
			best, distance = c, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(", did you mean %q?", prefix+best)
}

// editDistance is Levenshtein's: insertions, deletions and replacements, in bytes.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + slices.Min([]int{diagonal, row[j], row[j+1]})
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
