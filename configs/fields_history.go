package configs

import (
	"time"

	"github.com/cronlatch/cronlatch/jobs"
)

const historyShape = "{keep: 100, keep_for: 90d}"

// keptFields are the keys at the top about what is kept of runs, and where else it is told.
func keptFields() []field[daemonDraft] {
	return []field[daemonDraft]{
		{
			key: "history", doc: "How long runs are kept, with their output.",
			bind: func(d *daemonDraft) sink { return group[jobs.History]{historyFields(true), &d.History, historyShape} },
		},
		{
			key: "tracing", doc: "Where spans of runs go (OpenTelemetry); without it, nowhere.",
			bind: func(d *daemonDraft) sink { return group[Tracing]{tracingFields(), &d.Tracing, tracingShape} },
		},
	}
}

// historyFields are those of a job, or of all jobs.
func historyFields(all bool) []field[jobs.History] {
	fields := []field[jobs.History]{
		{
			key: "keep", doc: "How many of the newest runs of a job are kept, however old they are.",
			bind: func(h *jobs.History) sink { return number{&h.Keep, 1, 1_000_000} },
		},
		{
			key: "keep_for", doc: "How long a run is kept, however many there are.",
			bind: func(h *jobs.History) sink { return duration{&h.KeepFor, time.Minute, 10 * 365 * day} },
		},
	}
	if all {
		fields[0].initial, fields[0].env = "100", "CRONLATCH_HISTORY_KEEP"
		fields[1].initial, fields[1].env = "90d", "CRONLATCH_HISTORY_KEEP_FOR"
	}
	return fields
}

const tracingShape = `{endpoint: "http://collector:4318/v1/traces"}`

func tracingFields() []field[Tracing] {
	return []field[Tracing]{
		{
			key: "endpoint", env: "CRONLATCH_TRACING_ENDPOINT", doc: "The URL of a collector that takes OTLP over HTTP: `http://collector:4318/v1/traces`.",
			bind: func(t *Tracing) sink {
				return text{into: &t.Endpoint, check: checkHTTPURL, like: httpURLPattern}
			},
		},
		{
			key: "headers", doc: "Headers of the requests to it, by name. Their values are not shown anywhere.",
			bind: func(t *Tracing) sink { return secretHeaders{&t.Headers} },
		},
	}
}

// secretHeaders is a sink for headers whose values are not shown.
type secretHeaders struct{ into *map[string]jobs.Secret }

func (secretHeaders) empty() string { return "{}" }

func (s secretHeaders) read(r *reader, n *node, name string) {
	if n.kind != kindMap {
		r.hide(n)
		r.refuse(n, codeType, `%s must be a map such as {Authorization: "Bearer ${TOKEN}"}`, name)
		return
	}
	all := map[string]jobs.Secret{}
	for _, p := range n.pairs {
		if !r.spend() {
			return
		}
		if p.key.kind != kindText {
			continue // reported with the tree
		}
		if err := jobs.CheckHeader(p.key.text); err != nil {
			r.refuse(p.key, codeHTTP, "the header %q %s", abbreviate(p.key.text), err.Error())
			continue
		}
		var value jobs.Secret
		secretText{into: &value, check: checkHeaderValue}.read(r, p.value, name+"."+abbreviate(p.key.text))
		all[p.key.text] = value
	}
	*s.into = all
}

func checkHeaderValue(value string) error {
	for _, c := range value {
		if c < ' ' && c != '\t' || c == 0x7f {
			return urlError("has a control character (a line break?) in it")
		}
	}
	return nil
}

// checkTracing refuses what is sent nowhere.
func (r *reader) checkTracing(t *Tracing, n *node) {
	if n != nil && n.kind == kindMap && within(n, "endpoint") == n && t.Endpoint == "" && len(t.Headers) > 0 {
		r.refuse(n, codeRequired, "tracing has headers and no endpoint; add tracing.endpoint, or remove it")
	}
}

func (secretHeaders) schema() *schema { return mapSchema(nil, textSchema()) }
