package configs

import (
	"fmt"
	"regexp"

	"github.com/goccy/go-yaml/ast"
)

// anchorName is what may follow & and *.
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
	out := b.content(n)
	out.file = b.source
	return out
}

func (b *treeBuilder) content(n ast.Node) *node {
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
			out.again = append(out.again, pair{key, content})
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
			if b.merged++; b.merged > mergeBudget {
				return
			}
			if seen[p.key.text] == nil {
				seen[p.key.text] = p.key
				out.pairs = append(out.pairs, p)
			}
		}
	default:
		if !from.loose {
			b.addAt(from.at, codeAlias, `"<<" merges a map, not `+from.describe())
		}
	}
}
