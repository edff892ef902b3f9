package configs

import (
	"maps"
	"slices"
	"strings"
)

// overlay lays the environment over the file, and the flags over both.
func (r *reader) overlay(d *daemonDraft, o Options) {
	known := map[string]bool{}
	walk(daemonFields(), d, "", func(l leaf) {
		known[l.path] = true
		value, from := o.Flags[l.path], flagName(l.path)
		if value == "" && l.env != "" {
			value, from = o.Getenv(l.env), l.env
		}
		if value != "" {
			l.sink.read(r, &node{kind: kindText, text: value, loose: true, from: from}, l.path)
		}
	})
	for _, path := range slices.Sorted(maps.Keys(o.Flags)) {
		if !known[path] {
			r.refuse(&node{from: flagName(path)}, codeUnknownKey, "there is no key %q", path)
		}
	}
}

// flagName is the flag that sets the key at path: lock.ttl is --lock-ttl.
func flagName(path string) string {
	if path == "labels" {
		return "--label" // one of them, and more than once
	}
	path = strings.TrimPrefix(path, "auth.") // --token-file
	return "--" + strings.NewReplacer(".", "-", "_", "-").Replace(path)
}
