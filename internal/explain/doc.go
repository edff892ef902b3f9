// Package explain tells why a run ran, did not run, or will: a story in sentences.
//
// It is pure: what the database says comes in as Facts, read in one transaction (package scheduler), and a Story comes out.
// There is one function for each reason code (because.go), and none of them knows where its text is shown.
//
// Guarantees: every fact of a run's detail is in the story, also one that this version does not know, as "key: value"; no
// sentence has raw JSON, or a character that could act on a terminal. Instants in sentences are in UTC, to the second; the
// scheduled instant is there in the job's own zone as well, where that is another one.
//
// Not guaranteed: the ledger does not keep what a run waited for at each moment before it began. What is told of that is what
// is known of the same span: pauses, and other runs of the job.
//
// Tests: package scheduler plays a scenario for each outcome and each reason with the real loop, and compares the story with
// a file in testdata here.
package explain
