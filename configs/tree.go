package configs

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// kind is what a node is in YAML 1.2's core schema, as far as this file format tells it apart.
type kind int

const (
	kindNull kind = iota
	kindBool
	kindInteger
	kindFloat
	kindText
	kindList
	kindMap
)

// node is a value with its place. An alias is the very node of its anchor, so that a tree stays as small as its file.
type node struct {
	kind  kind
	text  string  // of a scalar: its value; numbers and booleans as they are written
	items []*node // of a list
	pairs []pair  // of a map, in order, each key once
	at    place
	block bool   // written as a block scalar
	from  string // the name of the variable or flag that it came from; "" is the file
	loose bool   // its type is not visible in how it is written: environment, flags, replaced variables
}

type pair struct {
	key, value *node
}

// get is the value of a key, or nil.
func (n *node) get(key string) *node {
	for _, p := range n.pairs {
		if p.key.text == key {
			return p.value
		}
	}
	return nil
}

// describe says what a node is, for "must be X, not ...".
func (n *node) describe() string {
	switch n.kind {
	case kindNull:
		return "null"
	case kindBool:
		return "the boolean " + n.text
	case kindInteger, kindFloat:
		return "the number " + abbreviate(n.text)
	case kindText:
		return fmt.Sprintf("the text %q", abbreviate(n.text))
	case kindList:
		return "a list"
	default:
		return "a map"
	}
}

// abbreviate keeps messages on one line of readable length.
func abbreviate(text string) string {
	runes := []rune(text)
	if len(runes) <= 60 {
		return text
	}
	return string(runes[:57]) + "..."
}

// parseTree turns text into a tree. It returns nil when there are problems that make the tree unusable, or when the
// document is empty.
func (f *findings) parseTree(text string) *node {
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
			return b.node(doc.Body)
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

// anchorName is what may follow & and *.
//
//nolint:gochecknoglobals // a compiled pattern is immutable
var anchorName = regexp.MustCompile(`^[^\s\[\]{},*&]+$`)

// treeBuilder turns the parser's tree into nodes.
type treeBuilder struct {
	*findings

	anchors map[string]*node // completed ones only: an alias inside its own anchor finds nothing
	merged  int              // pairs that merges copied; see mergeBudget
}

// mergeBudget bounds what chains of merges can copy.
const mergeBudget = 100_000

func (b *treeBuilder) node(n ast.Node) *node {
	switch v := n.(type) {
	case *ast.AnchorNode:
		return b.anchor(v)
	case *ast.AliasNode:
		return b.alias(v)
	case *ast.MappingNode:
		return b.mapping(v)
	case *ast.MappingValueNode:
		return b.mapping(&ast.MappingNode{BaseNode: &ast.BaseNode{}, Start: v.Start, Values: []*ast.MappingValueNode{v}})
	case *ast.SequenceNode:
		list := &node{kind: kindList, at: b.start(v, 1)}
		for _, item := range v.Values {
			list.items = append(list.items, b.node(item))
		}
		return list
	case *ast.LiteralNode:
		return &node{kind: kindText, text: v.Value.Value, block: true, at: b.start(v, len(v.Start.Value))}
	default:
		return b.scalar(n)
	}
}

func (b *treeBuilder) start(n ast.Node, length int) place {
	position := n.GetToken().Position
	return place{position.Line, position.Column, length}
}

func (b *treeBuilder) scalar(n ast.Node) *node {
	tk := n.GetToken()
	out := &node{kind: kindText, text: tk.Value}
	out.at = b.source.locate(tk.Position.Line, tk.Position.Column, tk.Value)
	switch n.(type) {
	case *ast.NullNode:
		out.kind, out.text = kindNull, ""
	case *ast.BoolNode:
		out.kind = kindBool
	case *ast.IntegerNode:
		out.kind = kindInteger
	case *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		out.kind = kindFloat
	case *ast.StringNode:
	default:
		b.addAt(out.at, codeSyntax, "a plain value was expected here")
	}
	return out
}

func (b *treeBuilder) anchor(v *ast.AnchorNode) *node {
	out := b.node(v.Value)
	if name := v.Name.GetToken().Value; anchorName.MatchString(name) {
		b.anchors[name] = out
	} else {
		b.addAt(b.start(v, 1), codeAlias, `"&" starts a name for this value, and the name is missing`)
	}
	return out
}

func (b *treeBuilder) alias(v *ast.AliasNode) *node {
	name := v.Value.GetToken().Value
	if target := b.anchors[name]; target != nil {
		return target
	}
	at := b.start(v, 1+len([]rune(name)))
	b.addAt(at, codeAlias, fmt.Sprintf("nothing above is marked &%s, so *%s repeats nothing", name, name))
	return &node{kind: kindNull, at: at, loose: true}
}

func (b *treeBuilder) mapping(v *ast.MappingNode) *node {
	out := &node{kind: kindMap, at: b.start(v, 1)}
	if len(v.Values) > 0 && !v.IsFlowStyle {
		out.at = b.start(v.Values[0].Key, 1)
	}
	seen := map[string]*node{}
	var merges []*node
	for _, value := range v.Values {
		if _, ok := value.Key.(*ast.MergeKeyNode); ok {
			merges = append(merges, b.node(value.Value))
			continue
		}
		key := b.key(value.Key)
		content := b.node(value.Value)
		if first := seen[key.text]; first != nil {
			b.addAt(key.at, codeDuplicateKey, fmt.Sprintf("key %q is already set in line %d; remove one of the two", abbreviate(key.text), first.at.line))
			continue
		}
		seen[key.text] = key
		out.pairs = append(out.pairs, pair{key, content})
	}
	for _, merge := range merges {
		b.merge(out, seen, merge)
	}
	return out
}

// key makes the key of a map: text only, because 010, no or null would each have two readings.
func (b *treeBuilder) key(k ast.MapKeyNode) *node {
	key := b.node(k)
	if key.kind != kindText {
		if key.kind == kindNull {
			key.text = k.GetToken().Value
		}
		b.addAt(key.at, codeType, fmt.Sprintf(`a key must be text; write "%s" in quotes`, abbreviate(key.text)))
	}
	return key
}

// merge adds the pairs of "<<" that the map does not have itself; of several maps the first one wins.
func (b *treeBuilder) merge(out *node, seen map[string]*node, from *node) {
	switch from.kind {
	case kindList:
		for _, item := range from.items {
			if item.kind == kindList {
				b.addAt(item.at, codeAlias, `"<<" merges maps, and this is a list`)
				continue
			}
			b.merge(out, seen, item)
		}
	case kindMap:
		for _, p := range from.pairs {
			if b.merged++; b.merged == mergeBudget {
				b.addAt(out.at, codeTooLarge, fmt.Sprintf("merges copy more than %d values", mergeBudget))
			}
			if seen[p.key.text] == nil && b.merged < mergeBudget {
				seen[p.key.text] = p.key
				out.pairs = append(out.pairs, p)
			}
		}
	default:
		if !from.loose {
			b.addAt(from.at, codeAlias, fmt.Sprintf(`"<<" merges a map, not %s`, from.describe()))
		}
	}
}
