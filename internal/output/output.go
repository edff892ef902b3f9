// Package output writes what commands answer: lists as a table, JSON, NDJSON, YAML or bare names, and text that came
// from users in a form that cannot act on a terminal.
//
// One List value describes an answer once: the items (which encode themselves as the API's objects), the columns a
// person sees, and the name a script wants. Every format is made from it, so that a field cannot be in one format and
// missing in another by accident.
//
// Guarantees: an empty list is `[]` and never `null`; a table row is exactly one line and a cell never contains a
// control or format character; JSON and YAML carry every string exactly, with what could act on a terminal written
// as an escape; color only repeats what the words say.
//
// Not guaranteed: columns line up by counting characters, so East Asian wide characters and emoji shift what follows.
//
// An error is the writer's own (a closed pipe), once wrapped, or that of an item's MarshalJSON.
//
// Tests are golden texts, and a property: what YAML and JSON readers get back equals what went in.
package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// Format is a form of an answer.
type Format string

// The formats.
const (
	Table  Format = "table"  // for people; the default
	JSON   Format = "json"   // one array (or object), indented
	NDJSON Format = "ndjson" // one object a line
	YAML   Format = "yaml"   // the JSON value as YAML
	Name   Format = "name"   // one name a line, for scripts
)

// List is an answer of many items of one kind.
type List[T any] struct {
	Items   []T // encoded with encoding/json
	Columns []Column[T]
	Name    func(T) string
}

// Column is one column of the table.
type Column[T any] struct {
	Title string
	Cell  func(T) string
	Tone  func(T) Tone // nil is Plain
	Right bool         // aligned to the right: numbers
}

// Options say where and how to write.
type Options struct {
	Writer io.Writer
	Format Format // "" is Table
	Color  bool   // tables only
}

// Write writes the list. An empty table is nothing at all: what to do next is a message, not data.
func Write[T any](o Options, l List[T]) error {
	text, err := encodeList(o, l)
	if err != nil {
		return err
	}
	return write(o.Writer, text)
}

func encodeList[T any](o Options, l List[T]) ([]byte, error) {
	switch o.Format {
	case JSON, YAML:
		items := l.Items
		if items == nil {
			items = []T{}
		}
		return encode(o.Format, items)
	case NDJSON:
		return encodeLines(l.Items)
	case Name:
		return encodeNames(l), nil
	case Table:
		return encodeTable(l, o.Color), nil
	default:
		return encodeTable(l, o.Color), nil
	}
}

// WriteValue writes one value; as a table it is the text that plain gives, line by line.
func WriteValue(o Options, v any, plain func() []string) error {
	if o.Format == JSON || o.Format == YAML || o.Format == NDJSON {
		text, err := encode(o.Format, v)
		if err != nil {
			return err
		}
		return write(o.Writer, text)
	}
	var b bytes.Buffer
	for _, line := range plain() {
		b.WriteString(Clean(line) + "\n")
	}
	return write(o.Writer, b.Bytes())
}

func write(w io.Writer, text []byte) error {
	if _, err := w.Write(text); err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	return nil
}

// encode is one value as JSON (indented, or on one line for NDJSON) or as YAML.
func encode(f Format, v any) ([]byte, error) {
	line, err := encodeLine(v)
	if err != nil {
		return nil, err
	}
	switch f {
	case NDJSON:
		return line, nil
	case YAML:
		return yamlFromJSON(line)
	case JSON, Table, Name:
	}
	var b bytes.Buffer
	if err := json.Indent(&b, line, "", "  "); err != nil {
		return nil, fmt.Errorf("indenting the answer: %w", err)
	}
	return b.Bytes(), nil
}

func encodeLine(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encoding the answer: %w", err)
	}
	return EscapeJSON(b.Bytes()), nil
}

func encodeLines[T any](items []T) ([]byte, error) {
	var b bytes.Buffer
	for _, item := range items {
		line, err := encodeLine(item)
		if err != nil {
			return nil, err
		}
		b.Write(line)
	}
	return b.Bytes(), nil
}

func encodeNames[T any](l List[T]) []byte {
	var b bytes.Buffer
	for _, item := range l.Items {
		b.WriteString(Clean(l.Name(item)) + "\n")
	}
	return b.Bytes()
}
