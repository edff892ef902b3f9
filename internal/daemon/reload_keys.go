package daemon

import (
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/cronlatch/cronlatch/configs"
	"github.com/cronlatch/cronlatch/jobs"
)

// followed are the fields of a configuration that a running daemon can follow, or that are no keys. Every other field,
// one that is added later too, needs a restart until somebody has made it follow.
func followed() []string {
	return []string{"Path", "Dir", "Include", "Version", "Channels", "History", "Jobs", "JobHashes", "Hash"}
}

// needRestart names the keys in which two configurations differ and that a running daemon cannot follow.
func needRestart(old, next *configs.Config) []string {
	var keys []string
	differing(reflect.ValueOf(*old), reflect.ValueOf(*next), "", func(key string) {
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	})
	slices.Sort(keys)
	return keys
}

// differing calls found with the key of each field that is not equal. Groups of keys are the structs of the configuration.
func differing(old, next reflect.Value, prefix string, found func(key string)) {
	for i := range old.NumField() {
		field := old.Type().Field(i)
		if prefix == "" && slices.Contains(followed(), field.Name) {
			continue
		}
		key := prefix + snake(field.Name)
		if key == "auth.none" { // auth: none is a value in the place of the map
			key = "auth"
		}
		switch a, b := old.Field(i), next.Field(i); {
		case field.Type.Kind() == reflect.Struct:
			differing(a, b, key+".", found)
		case !reflect.DeepEqual(a.Interface(), b.Interface()):
			found(key)
		}
	}
}

// history is how long runs are kept of jobs that say nothing else, as the configuration is now.
func (d *Daemon) history() jobs.History {
	d.reloading.Lock()
	defer d.reloading.Unlock()
	return d.config.History
}

// snake is the key that belongs to a field: DrainTimeout is drain_timeout, TLS is tls.
func snake(name string) string {
	var b strings.Builder
	lower := false
	for _, r := range name {
		if unicode.IsUpper(r) && lower {
			b.WriteByte('_')
		}
		lower = unicode.IsLower(r)
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
