package importer

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

// value is a part of a manifest. The zero value is what is not there; every method may be asked of a nil one.
type value struct {
	line  int
	text  string // of a scalar
	isSet bool   // a scalar other than null
	items []*value
	keys  map[string]*value
}

// get is the value under a path of keys; nil when there is none.
func (v *value) get(path ...string) *value {
	for _, key := range path {
		if v == nil {
			return nil
		}
		v = v.keys[key]
	}
	return v
}

func (v *value) has(path ...string) bool {
	found := v.get(path...)
	return found != nil && (found.isSet || len(found.items) > 0 || len(found.keys) > 0)
}

func (v *value) word(path ...string) string {
	if found := v.get(path...); found != nil {
		return found.text
	}
	return ""
}

func (v *value) list(path ...string) []*value {
	if found := v.get(path...); found != nil {
		return found.items
	}
	return nil
}

// texts are the items of a list of scalars.
func (v *value) texts(path ...string) []string {
	var all []string
	for _, item := range v.list(path...) {
		all = append(all, item.text)
	}
	return all
}

// at is the line of a value under a path, or that of the closest one above it.
func (v *value) at(path ...string) int {
	line := v.line
	for _, key := range path {
		if v = v.get(key); v == nil {
			break
		}
		line = v.line
	}
	return line
}

// readManifests reads the documents of a file. The parser needs memory that is quadratic in the nesting, which is
// therefore looked at before.
func readManifests(s Source) (documents []*value, problem *Problem) {
	defer func() {
		if r := recover(); r != nil { // a file must not end the program with a trace
			documents, problem = nil, faulty(s, 1, fmt.Sprintf("the YAML parser gave up: %v", r))
		}
	}()
	if len(s.Data) > MaxBytes {
		return nil, faulty(s, 1, fmt.Sprintf("the file has more than %d bytes (1 MiB); split it", MaxBytes))
	}
	tokens := lexer.Tokenize(string(s.Data))
	if line := tooDeep(tokens); line > 0 {
		return nil, faulty(s, line, fmt.Sprintf("nested deeper than %d levels", deepestManifest))
	}
	file, err := parser.Parse(tokens, 0)
	if err != nil {
		return nil, syntaxFault(s, err)
	}
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		b := treeBuilder{source: s, anchors: map[string]*value{}}
		tree := b.value(doc.Body)
		if b.problem != nil {
			return nil, b.problem
		}
		documents = append(documents, tree)
	}
	return documents, nil
}

func faulty(s Source, line int, message string) *Problem {
	p := refuse(s, line, "%s", message)
	return &p
}

func syntaxFault(s Source, err error) *Problem {
	hint := ""
	if strings.Contains(string(s.Data), "{{") {
		hint = "; templates must be rendered first (helm template, kustomize build)"
	}
	var syntax *yaml.SyntaxError
	if errors.As(err, &syntax) && syntax.Token != nil && syntax.Token.Position != nil {
		return faulty(s, max(syntax.Token.Position.Line, 1), "this is not YAML: "+syntax.Message+hint)
	}
	return faulty(s, 1, "this is not YAML: "+err.Error()+hint)
}

// deepestManifest leaves room for the managed fields of a CronJob in a list.
const deepestManifest = 64

// tooDeep is the line at which the nesting is beyond the limit; 0 is nowhere.
func tooDeep(tokens token.Tokens) int {
	var columns []int
	flow, previous := 0, 0
	entry := false
	for _, tk := range tokens {
		at := tk.Position
		switch {
		case tk.Type == token.SequenceStartType || tk.Type == token.MappingStartType:
			flow++
		case tk.Type == token.SequenceEndType || tk.Type == token.MappingEndType:
			flow = max(flow-1, 0)
		case flow == 0 && (at.Line != previous || entry):
			for len(columns) > 0 && columns[len(columns)-1] >= at.Column {
				columns = columns[:len(columns)-1]
			}
			columns = append(columns, at.Column)
		}
		if len(columns)+flow > deepestManifest {
			return at.Line
		}
		previous, entry = at.Line, tk.Type == token.SequenceEntryType
	}
	return 0
}

// treeBuilder turns the parser's tree into values.
type treeBuilder struct {
	source  Source
	anchors map[string]*value // completed ones only: an alias inside its own anchor finds nothing
	problem *Problem          // the first one
}

func (b *treeBuilder) refuse(line int, message string) *value {
	if b.problem == nil {
		b.problem = faulty(b.source, line, message)
	}
	return &value{line: line}
}

func (b *treeBuilder) value(n ast.Node) *value {
	if n == nil || n.GetToken() == nil {
		return &value{line: 1}
	}
	line := n.GetToken().Position.Line
	switch v := n.(type) {
	case *ast.AnchorNode:
		out := b.value(v.Value)
		b.anchors[v.Name.GetToken().Value] = out
		return out
	case *ast.AliasNode:
		name := v.Value.GetToken().Value
		if target := b.anchors[name]; target != nil {
			return target
		}
		return b.refuse(line, fmt.Sprintf("nothing above is marked &%s, so *%s repeats nothing", name, name))
	case *ast.TagNode:
		return b.value(v.Value)
	case *ast.MappingNode:
		return b.mapping(line, v.Values)
	case *ast.MappingValueNode:
		return b.mapping(line, []*ast.MappingValueNode{v})
	case *ast.SequenceNode:
		out := &value{line: line}
		for _, item := range v.Values {
			out.items = append(out.items, b.value(item))
		}
		return out
	case *ast.LiteralNode:
		return &value{line: line, text: v.Value.Value, isSet: true}
	case *ast.NullNode:
		return &value{line: line}
	default:
		return &value{line: line, text: n.GetToken().Value, isSet: true}
	}
}

func (b *treeBuilder) mapping(line int, pairs []*ast.MappingValueNode) *value {
	out := &value{line: line, keys: make(map[string]*value, len(pairs))}
	for i, pair := range pairs {
		at := pair.Key.GetToken().Position.Line
		if i == 0 {
			out.line = at
		}
		if _, ok := pair.Key.(*ast.MergeKeyNode); ok {
			b.refuse(at, `"<<" is not read; write the keys out, or apply the file and import what "kubectl get cronjob -o yaml" shows`)
			continue
		}
		child := b.value(pair.Value)
		if child.keys == nil && child.items == nil { // a scalar below its key is found at the key
			scalar := *child
			scalar.line = at
			child = &scalar
		}
		out.keys[pair.Key.GetToken().Value] = child
	}
	return out
}
