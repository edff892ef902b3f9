package explain

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
)

// details are the facts of a row. What was taken has been told; the rest is told at the end, so that nothing is hidden.
type details struct {
	m     map[string]any
	inner []inner // objects and lists that were taken, which may have a rest of their own
}

type inner struct {
	key string
	d   *details
}

func read(doc json.RawMessage) *details {
	d := &details{m: map[string]any{}}
	if len(doc) == 0 {
		return d
	}
	dec := json.NewDecoder(bytes.NewReader(doc))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return d
	}
	if m, ok := v.(map[string]any); ok {
		d.m = m
	}
	return d
}

// all is the whole document, for programs.
func all(doc json.RawMessage) map[string]any {
	if m := read(doc).m; len(m) > 0 {
		return m
	}
	return nil
}

func take[T any](d *details, key string) (value T, ok bool) {
	if value, ok = d.m[key].(T); ok {
		delete(d.m, key)
	}
	return value, ok
}

// text is "" when there is none.
func (d *details) text(key string) string {
	s, _ := take[string](d, key)
	return s
}

// number is 0 when there is none.
func (d *details) number(key string) int64 {
	n, ok := d.m[key].(json.Number)
	if !ok {
		return 0
	}
	value, err := n.Int64()
	if err != nil {
		return 0
	}
	delete(d.m, key)
	return value
}

// instant is the zero time when there is none; null counts as none.
func (d *details) instant(key string) time.Time {
	if v, there := d.m[key]; there && v == nil {
		delete(d.m, key)
		return time.Time{}
	}
	s, ok := d.m[key].(string)
	if !ok {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}
	}
	delete(d.m, key)
	return at
}

// object is empty when there is none.
func (d *details) object(key string) *details {
	m, ok := take[map[string]any](d, key)
	o := &details{m: m}
	if ok {
		d.inner = append(d.inner, inner{key, o})
	}
	return o
}

// objects are those of a list.
func (d *details) objects(key string) []*details {
	values, _ := take[[]any](d, key)
	list := make([]*details, 0, len(values))
	for i, v := range values {
		m, ok := v.(map[string]any)
		if !ok {
			m = map[string]any{"value": v}
		}
		o := &details{m: m}
		list = append(list, o)
		d.inner = append(d.inner, inner{key + " " + strconv.Itoa(i+1), o})
	}
	return list
}

// texts takes an object of texts, such as labels.
func (d *details) texts(key string) map[string]string {
	o := d.object(key)
	all := map[string]string{}
	for k := range o.m {
		if s, ok := take[string](o, k); ok {
			all[k] = s
		}
	}
	return all
}

// rest is what nobody has taken, as "key: value" by key.
func (d *details) rest() []string {
	lines := []string{}
	for _, key := range slices.Sorted(maps.Keys(d.m)) {
		lines = flat(lines, key, d.m[key])
	}
	for _, i := range d.inner {
		for _, line := range i.d.rest() {
			lines = append(lines, i.key+" "+line)
		}
	}
	return lines
}

// told is a text with what is left, of which nothing is left then.
func (d *details) told(text string) string {
	text = withRest(text, d)
	d.m, d.inner = nil, nil
	return text
}

func flat(lines []string, key string, value any) []string {
	switch v := value.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			lines = flat(lines, key+" "+k, v[k])
		}
		return lines
	case []any:
		for i, one := range v {
			lines = flat(lines, key+" "+strconv.Itoa(i+1), one)
		}
		return lines
	case nil:
		return append(lines, key+": none")
	default:
		return append(lines, fmt.Sprintf("%s: %v", key, v))
	}
}
