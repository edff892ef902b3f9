package jobs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/jobs"
)

// constants are the values of the constants of a type, as the source of this package has them.
func constants(t *testing.T, typeName string) (values []string) {
	t.Helper()
	entries, err := os.ReadDir(".")
	require.NoError(t, err)
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), e.Name(), nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			if id, ok := spec.Type.(*ast.Ident); !ok || id.Name != typeName {
				return true
			}
			for _, v := range spec.Values {
				if lit, ok := v.(*ast.BasicLit); ok {
					text, err := strconv.Unquote(lit.Value)
					require.NoError(t, err)
					values = append(values, text)
				}
			}
			return true
		})
	}
	slices.Sort(values)
	return values
}

func TestTheListsAreWhole(t *testing.T) {
	t.Parallel()
	var reasons, outcomes []string
	for _, r := range jobs.Reasons() {
		reasons = append(reasons, string(r))
	}
	for _, o := range jobs.Outcomes() {
		outcomes = append(outcomes, string(o))
	}
	slices.Sort(reasons)
	slices.Sort(outcomes)
	assert.Equal(t, constants(t, "Reason"), reasons)
	assert.Equal(t, constants(t, "Outcome"), outcomes)
	assert.Greater(t, len(reasons), 20)
}
