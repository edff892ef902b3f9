package pgserver

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Option changes a server before its first start.
type Option func(map[string]string)

// Fsync makes the server write through to the disk, as a production server does.
func Fsync() Option {
	return func(m map[string]string) { m["fsync"], m["full_page_writes"] = "on", "on" }
}

// Setting sets one parameter of postgresql.conf, for example Setting("max_connections", "20").
func Setting(name, value string) Option {
	return func(m map[string]string) { m[name] = value }
}

// defaults are the settings of a test server. The log shows the SQLSTATE of every error and the statement that caused
// it, so that a test can count them.
func defaults() map[string]string {
	return map[string]string{
		"listen_addresses":           "127.0.0.1",
		"max_connections":            "300",
		"fsync":                      "off",
		"full_page_writes":           "off",
		"logging_collector":          "off",
		"log_destination":            "stderr",
		"log_line_prefix":            "%m [%p] %e ",
		"log_min_messages":           "warning",
		"log_min_error_statement":    "error",
		"log_timezone":               "UTC",
		"timezone":                   "UTC",
		"lc_messages":                "C",
		"dynamic_shared_memory_type": "mmap", // in the data directory: a container's /dev/shm is small, or missing
	}
}

func render(settings map[string]string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		fmt.Fprintf(&b, "%s = '%s'\n", name, strings.ReplaceAll(settings[name], "'", "''"))
	}
	return b.String()
}
