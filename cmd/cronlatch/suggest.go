package main

import (
	"fmt"
	"strings"

	"github.com/cronlatch/cronlatch/internal/typo"
)

// didYouMean ends a message with the closest of the candidates, when one is close enough to be a typo.
func didYouMean(word, prefix string, candidates []string) string {
	best, distance := "", max(2, len(word)/3)+1
	for _, c := range candidates {
		if d := typo.Distance(strings.ToLower(word), strings.ToLower(c)); d < distance && d < len(c) {
			best, distance = c, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(", did you mean %q?", prefix+best)
}
