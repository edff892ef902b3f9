// Package lockingtest holds what tests of locks need, for this project and for users of package locking:
//
//   - Run, the conformance suite that every locking.Store must pass. It is the contract in executable form. A store that
//     asks a server says so (Backend.Behind), and is not asked for what the protocol cannot say;
//   - NewMemory, a store in memory that passes it. It takes a clock, so it works inside a testing/synctest bubble,
//     where a lease of an hour expires in no time;
//   - Record, which notes what a store answered and checks it afterwards against the promises (exclusive in the record,
//     tokens only grow), and Storm, which drives a store with honest and zombie calls worth checking;
//   - Register, a resource that checks fencing tokens.
//
// The checkers judge answers only. They need no knowledge of the store, no clock but the one in the records, and no
// order of the calls: tokens give the order, times must agree with it. Each is proved by stores that are wrong on
// purpose (mutants_test.go).
//
// The memory store promises nothing across processes or restarts, and does not lose answers; for that there are real
// databases.
package lockingtest
