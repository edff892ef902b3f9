// Package filter is the small language in which people say which runs, jobs or rows of the audit they mean: in the API, on
// the command line, in the address of a page.
//
// # Grammar
//
//	filter = [ term { space term } ]            all terms must be true; no term selects everything
//	term   = [ "-" ] ( key ":" value { "," value } | value )
//	key    = one of those of the list that is asked, in keys.go
//	value  = text | '"' text '"' [ "*" ]        in quotes \" and \\ are a quote and a backslash
//
// A "-" in front of a term means: not. Several values mean: one of them. A value of job, replica, resource, action or actor
// that ends in an unquoted "*" means everything that begins like it. A word without a key is part of the job's name, letter by letter; a word
// that holds a colon must be quoted, or it would be a key. tag means the jobs that have the tag in the definitions of the
// process that is asked.
//
// since and until take one value and no "-": a duration back from now (90m, 24h, 3d, 2w) or an instant in RFC 3339. They
// are about the scheduled instant of a run and the time of an audit's row, both included.
//
//	job:report:* outcome:failed,lost since:3d
//	-state:finished -trigger:manual tag:finance
//	backup "two words" until:2026-03-01T00:00:00Z
//	tag:finance outcome:failed -paused:true                  of jobs
//	action:job.*,run.cancel -actor:t3 since:1d               of the audit
//
// # Guarantees
//
// A text is understood as a whole or refused with an *Error that names the term, where it begins, and what was probably
// meant. Parsing needs no clock, no database and no definitions; it never panics, and its cost is linear in the text, which
// may have MaxBytes at most.
//
// # Tests
//
// A table of texts, a fuzz target (FuzzParse) that compares the answer with a filter written back as a text, and a
// test that the reasons known here are those of package jobs. What a filter selects is tested in package jobs, on both databases.
package filter
