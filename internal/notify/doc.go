// Package notify sends what people and other systems want to hear of: messages to channels (a signed webhook, Slack and what
// understands its form, e-mail), and pings to the URLs of jobs.
//
// Model: what is to be said is decided by the scheduler, which writes it into the outbox in the same transaction in which it
// notes that it has looked. A Sender takes messages out of the outbox, one claim at a time for the whole fleet, sends them
// outside of any transaction, and marks them. All that waits for one channel goes as one. The ping that a run has begun is
// apart (Pinger): it is sent by the replica that runs it, from memory, and nothing waits for it.
//
// Guarantees: one event is one message, whichever replica is killed when, and it is tried for a day. A try takes at most 10 s.
// No error, no log line and no row has a URL, a password, or anything that the other side has answered but a number, or the
// names in its certificate.
//
// Not guaranteed: exactly once. A sender that is killed between the other side's answer and the mark leaves a message that
// is sent again; it has the same id. The ping that a run has begun may be lost, and of the ends of a job that could not be told
// only the last one is told later.
//
// Failure: a channel that does not answer is tried again with growing pauses; after a day its messages are given up, with a
// line in the log and a row of the audit.
//
// Tests are without a network where time matters (testing/synctest, with a SQLite file whose clock is the bubble's), and with
// real servers on loopback where bytes matter; internal/fleet counts messages of three real daemons.
package notify
