package configs

import (
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// parseTree turns text into a tree. It returns nil when there are problems that make the tree unusable, or when the
// document is empty.
func (f *findings) parseTree(text string) (root *node) {
	f.source.unread = true
	defer func() {
		f.source.unread = root == nil && !f.none() || root != nil && root.kind != kindMap && root.kind != kindNull
	}()
	tokens, err := tokenize(text)
	if err != nil {
		f.addAt(place{1, 1, 1}, codeSyntax, err.Error())
		return nil
	}
	if f.screenTokens(tokens); !f.none() {
		return nil
	}
	file, err := parseTokens(tokens)
	if err != nil {
		f.add(syntaxProblem(f.source, err))
		return nil
	}
	b := &treeBuilder{findings: f, anchors: map[string]*node{}}
	for _, doc := range file.Docs {
		if doc.Body != nil {
			root := b.node(doc.Body)
			if b.merged > mergeBudget {
				b.only(b.source.problem(place{1, 1, 1}, codeTooLarge, fmt.Sprintf("merges (\"<<\") copy more than %d values", mergeBudget)))
				return nil
			}
			return root
		}
	}
	return nil
}

func parseTokens(tokens token.Tokens) (file *ast.File, err error) {
	defer recovered(&err)
	// Duplicates are found here, because the parser would stop at the first one.
	return parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
}

// syntaxProblem turns the parser's error into a sentence about this file.
func syntaxProblem(s *source, err error) Problem {
	var syntax *yaml.SyntaxError
	if !errors.As(err, &syntax) || syntax.Token == nil || syntax.Token.Position == nil {
		return s.problem(place{1, 1, 1}, codeSyntax, err.Error())
	}
	position := syntax.Token.Position
	at := place{position.Line, position.Column, 1}
	rest := string(s.rest(at.line, at.column))
	switch {
	case strings.HasPrefix(rest, "\t"), strings.Contains(syntax.Message, `'\t'`), strings.Contains(syntax.Message, "tab"):
		return s.problem(at, codeSyntax, "a tab cannot indent YAML; use spaces")
	case strings.HasPrefix(rest, "@"), strings.HasPrefix(rest, "`"), strings.HasPrefix(rest, "%"):
		at.length = len([]rune(strings.TrimRight(rest, " \t")))
		return s.problem(at, codeSyntax, fmt.Sprintf("text that starts with %q must be in quotes", rest[:1]))
	}
	if after, ok := strings.CutPrefix(syntax.Message, "found unknown escape character "); ok {
		at.column, at.length = at.column-1, 2
		escape := `\` + strings.Trim(after, "'")
		return s.problem(at, codeSyntax, fmt.Sprintf(`%s means nothing in double quotes; write \%s, or use single quotes`, escape, escape))
	}
	if sentence, ok := sentences()[syntax.Message]; ok {
		return s.problem(at, codeSyntax, sentence)
	}
	return s.problem(at, codeSyntax, syntax.Message)
}

// sentences are better words for the parser's messages.
func sentences() map[string]string {
	const indentation = "this line does not continue what is above it; check its indentation and the quotes before it"
	return map[string]string{
		"value is not allowed in this context":                               indentation,
		"value is not allowed in this context. map key-value is pre-defined": "text follows a value that is already complete; put the whole value in quotes",
		"non-map value is specified":                                         `"key: value" was expected here; a colon or its space is missing, or the indentation is wrong`,
		"unexpected key name":                                                `"key: value" was expected here; the key is missing`,
		"mapping value is not allowed in this context":                       "a key inside a value; check the indentation of the next line, or put the value in quotes",
		"block sequence entries are not allowed in this context":             `a list item ("- ") must start on a line of its own`,
		"could not find end character of double-quoted text":                 "the double quote is never closed",
		"could not find end character of single-quoted text":                 "the single quote is never closed",
		"',' or ']' must be specified":                                       `a list in brackets continues here without "," or "]"`,
		"',' or '}' must be specified":                                       `a map in braces continues here without "," or "}"`,
		"sequence end token ']' not found":                                   `a list in brackets is never closed with "]"`,
		"could not find flow mapping end token '}'":                          `a map in braces is never closed with "}"`,
		"could not find map value":                                           "a map ends in the middle of a key; the colon and the value are missing",
		"unexpected scalar value type":                                       "a value was expected here",
		"found an invalid key for this map":                                  "a key must be plain text",
	}
}

// tokenize is the lexer behind a guard: a panic in it, or in the parser, must not take a running daemon down.
func tokenize(text string) (tokens token.Tokens, err error) {
	defer recovered(&err)
	return lexer.Tokenize(text), nil
}

func recovered(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("the YAML parser gave up: %v", r)
	}
}
