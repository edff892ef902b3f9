package linear

import (
	"errors"
	"fmt"
	"time"

	"github.com/cronlatch/cronlatch/locking"
)

// verb is what a client asks for.
type verb string

const (
	acquire verb = "acquire"
	renew   verb = "renew"
	release verb = "release"
	get     verb = "get"
	force   verb = "force"
)

// call is one request about one resource.
type call struct {
	verb      verb
	resource  string
	owner     string
	token     int64 // 0: none was named
	ttl       time.Duration
	immediate bool
}

// verdict is what came back.
type verdict string

const (
	done     verdict = "done"
	refused  verdict = "refused" // an acquire: somebody else holds it
	lost     verdict = "lost"
	notFound verdict = "not found"
	notOwner verdict = "not the owner"
	stale    verdict = "stale token"
	unknown  verdict = "unknown"
)

// answer is a verdict with what was seen. All times are nanoseconds of the wall clock of this machine.
type answer struct {
	verdict  verdict
	owner    string // "" when the answer does not tell
	token    int64  // 0 when the answer does not tell
	expiry   int64  // 0 when the answer does not tell
	from, to int64  // between these the database served the call
}

// slack is what two readings of one clock may differ by: SQLite counts milliseconds, and so does remaining_ms.
const slack = int64(2 * time.Millisecond)

// answerOf classifies an answer of a store. The verdict of an error that is no fact about the lock is unknown.
func answerOf(c call, row locking.Record, ok bool, err error) answer {
	a := answer{verdict: done, owner: row.Owner, token: row.FencingToken}
	if !row.ExpiresAt.IsZero() {
		a.expiry = row.ExpiresAt.UnixNano()
	}
	for fact, v := range map[error]verdict{
		locking.ErrLost: lost, locking.ErrNotFound: notFound, locking.ErrNotOwner: notOwner, locking.ErrStaleToken: stale,
	} {
		if errors.Is(err, fact) && !errors.Is(err, locking.ErrUnknown) {
			return answer{verdict: v}
		}
	}
	switch {
	case err != nil:
		return answer{verdict: unknown}
	case !ok:
		a.verdict = refused
	case c.verb == release || c.verb == force:
		return answer{verdict: done} // the row shows how it ended, not what it was
	}
	return a
}

// served narrows when the database served a call: a grant and a renewal show it.
func (a answer) served(c call) answer {
	if a.verdict == done && (c.verb == acquire || c.verb == renew) && a.expiry != 0 {
		a.to = min(a.to, a.expiry-int64(c.ttl)+slack)
	}
	return a
}

func describe(c call, a answer) string {
	text := fmt.Sprintf("%s %s", c.verb, c.resource)
	if c.owner != "" {
		text += " by " + c.owner
	}
	if c.token != 0 {
		text += fmt.Sprintf(" with token %d", c.token)
	}
	if c.immediate {
		text += " at once"
	}
	text += " -> " + string(a.verdict)
	if a.token != 0 || a.owner != "" {
		text += fmt.Sprintf(" (%s, token %d)", a.owner, a.token)
	}
	if a.expiry != 0 {
		text += " until " + time.Unix(0, a.expiry).UTC().Format("15:04:05.000000")
	}
	const clock = "05.000000"
	return text + fmt.Sprintf(" [%s-%s]", time.Unix(0, a.from).UTC().Format(clock), time.Unix(0, a.to).UTC().Format(clock))
}
