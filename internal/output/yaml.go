package output

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

// yamlFromJSON writes a JSON text as block-style YAML, keys in their order.
//
// An own writer, because the module's YAML library loses a leading tab of a string on the way through
// JSONToYAML. A JSON string is a YAML double-quoted string, so quoting whatever is not plainly a word is exact.
func yamlFromJSON(text []byte) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	y := yamlWriter{dec: dec}
	if err := y.value("", false); err != nil {
		return nil, fmt.Errorf("writing YAML: %w", err)
	}
	return y.out.Bytes(), nil
}

type yamlWriter struct {
	dec *json.Decoder
	out bytes.Buffer
}

// value writes the next value. inline says that the line already has a key ("key:") and needs a blank before a scalar
// and a new line before a block; indent is that of the block.
func (y *yamlWriter) value(indent string, inline bool) error {
	token, err := y.dec.Token()
	if err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	delim, isBlock := token.(json.Delim)
	if !isBlock {
		if inline {
			y.out.WriteByte(' ')
		}
		y.out.WriteString(yamlScalar(token) + "\n")
		return nil
	}
	if !y.dec.More() {
		return y.empty(delim, inline)
	}
	if inline {
		y.out.WriteByte('\n')
	}
	if delim == '[' {
		return y.list(indent, inline)
	}
	return y.object(indent, inline)
}

func (y *yamlWriter) empty(open json.Delim, inline bool) error {
	if inline {
		y.out.WriteByte(' ')
	}
	y.out.WriteString(map[json.Delim]string{'[': "[]", '{': "{}"}[open] + "\n")
	return y.end()
}

// list and object write their items; after "- " the first one stands on the same line.
func (y *yamlWriter) list(indent string, ownLine bool) error {
	for first := true; y.dec.More(); first = false {
		if !first || ownLine {
			y.out.WriteString(indent)
		}
		y.out.WriteString("- ")
		if err := y.value(indent+"  ", false); err != nil {
			return err
		}
	}
	return y.end()
}

func (y *yamlWriter) object(indent string, ownLine bool) error {
	for first := true; y.dec.More(); first = false {
		key, err := y.dec.Token()
		if err != nil {
			return fmt.Errorf("reading the answer: %w", err)
		}
		if !first || ownLine {
			y.out.WriteString(indent)
		}
		y.out.WriteString(yamlScalar(key) + ":")
		if err := y.value(indent+"  ", true); err != nil {
			return err
		}
	}
	return y.end()
}

func (y *yamlWriter) end() error {
	if _, err := y.dec.Token(); err != nil {
		return fmt.Errorf("reading the answer: %w", err)
	}
	return nil
}

// plainWord is what every YAML reader takes for a string without quotes; words that some take for another type are
// in yamlReserved.
var plainWord = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_./-]*$`)

const yamlReserved = " true false yes no on off y n null nan inf "

func yamlScalar(token json.Token) string {
	s, ok := token.(string)
	if !ok {
		if token == nil {
			return "null"
		}
		return fmt.Sprint(token)
	}
	if plainWord.MatchString(s) && !strings.Contains(yamlReserved, " "+strings.ToLower(s)+" ") {
		return s
	}
	quoted, err := json.Marshal(s)
	if err != nil { // a string always encodes
		return `""`
	}
	return string(escapeActing(quoted, func(r rune) string { return fmt.Sprintf(`\U%08x`, r) }))
}
