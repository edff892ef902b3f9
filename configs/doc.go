// Package configs reads the configuration file: the daemon's keys and the definitions of jobs.
//
// # Model
//
// A file goes through five steps, each in a file of its own: bytes and tokens are screened (screen.go), what the parser
// makes of them (syntax.go) becomes a small tree of nodes with positions (tree.go), the field tables read that into
// typed drafts (fields_daemon.go, fields_job.go), environment and flags are laid over it (overlay.go), and each draft
// is checked as a whole and built (build.go). What a file includes is read in the same way and adds its jobs
// (include.go). A hook becomes a draft of its own (fields_hooks.go); how jobs come after each other is checked last, by
// the rules of package jobs (fields_after.go). The tables are the only place that knows a key: its name, type, bounds,
// default, environment variable and documentation; the JSON Schema (schema.go) and the reference page are made from
// them.
//
// Check also looks for what is right and probably not meant (lint.go). Loading does not: a warning never stops a daemon.
//
// # Guarantees
//
// Nothing is guessed: an unknown key, a duplicate key, a value of another type and a second document are errors. All
// problems are reported at once, sorted by position, each with line, column, the line itself and the way out; then
// nothing is loaded. Whatever the bytes are, reading them ends in bounded time and memory and never panics: size,
// nesting, aliases and the number of reported problems are limited. Two files with the same definitions have the same
// Config.Hash, however they are written.
//
// ${VAR}, ${VAR:-default}, ${VAR:?message} and ${file:path} are replaced in scalar values, once, after parsing; never
// in keys and where a job is named, and never in run and command, where the dollar belongs to the shell. $$ is one
// dollar. What a variable holds is never parsed again. A message shows it for schedules, zones, addresses and names of
// resources only.
//
// # Not guaranteed
//
// That a job's command exists, that a database can be reached, or that an address can be listened on: loading touches
// nothing but the file and the files named in ${file:...}. A syntax error ends the reading, so that the problems behind
// it are seen in the next attempt only.
//
// # Failures
//
// An error of Load is *Errors when the content is at fault, and an ordinary wrapped error when the file could not be
// read. Callers keep what they had.
//
// # Tests
//
// A schema validator and the loader are asked about every fixture, and about every good one with each of its values
// changed. testdata/bad holds files with one mistake each, and beside each the exact text that it must give (go test
// ./configs -update writes them anew: read the diff). testdata/lint is the same for warnings, testdata/good must load.
// FuzzParse looks for panics and for positions outside the file.
package configs
