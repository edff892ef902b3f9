package configs

import (
	"fmt"
	"strings"
	"testing"
)

// BenchmarkParse reads files with many jobs.
func BenchmarkParse(b *testing.B) {
	for _, n := range []int{10, 1_000, 5_000} {
		var text strings.Builder
		text.WriteString("version: 1\njobs:\n")
		for i := range n {
			fmt.Fprintf(&text, "  job-%d:\n    description: Number %d\n    schedule: \"%d 2 * * *\"\n    command: [echo, \"%d\"]\n    timeout: 5m\n    env: {A: b}\n", i, i, i%60, i)
		}
		data := []byte(text.String())
		b.Run(fmt.Sprintf("jobs=%d", n), func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Parse("f", data, Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
