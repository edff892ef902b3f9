// Package doctor looks at everything that cronlatch stands on, and says of each thing whether it is good, and what to do
// when it is not.
//
// Model: facts are gathered in one place (examine.go, postgres.go, sqlite.go, host_unix.go) and judged in another, by pure
// functions (judge_*.go) that take the facts and return a [Finding]. The order of the findings is always the same.
//
// Guarantees: what cannot be found out is said so, and never taken for good. Without a database everything else is still
// looked at. Nothing is written anywhere; a database that is not there is not made.
//
// Not guaranteed: that a machine without a complaint is safe. What cannot be seen from here is in docs/operations.md.
//
// Tests: the judgements as tables, the facts against real databases, also through PgBouncer.
package doctor
