package configs

import "fmt"

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
	again []pair  // of a map, whose keys it has already
	at    place
	file  *source // nil for what is in no file
	block bool    // written as a block scalar
	from  string  // the name of the variable or flag that it came from; "" is the file
	loose bool    // its type is not visible in how it is written: environment, flags, replaced variables
}

type pair struct {
	key, value *node
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

// describeKind is describe without the text, for a file that may be any file, one with a password even.
func (n *node) describeKind() string {
	switch n.kind {
	case kindList, kindMap, kindNull:
		return n.describe()
	default:
		return "a text"
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
