// Package httplock takes locks from a cronlatch server, over HTTP: the same locking.Store, and with it the same
// locking.Locker, as on the database itself. Code switches by its constructor only:
//
//	locker, err := locking.Open(db)               // the database
//	locker, err := locking.OpenStore(client)      // the server: client, err := httplock.New(httplock.Options{...})
//
// # Model
//
// One request for each call, and for each resource of a batch (a bounded number at once). The database's clock decides, as
// always. The client counts from what is left of a lock when the server answered, never from the server's clock and its
// own: Record.Now is ExpiresAt less the remaining time of the answer.
//
// # Guarantees
//
// What package locking promises holds through a server, for the same reasons: the holder counts from before its request
// was sent. A lock is only lost or refused when the server says so, in an answer about that resource and with a code that
// this package knows; a proxy's page, a redirect, an answer that is cut off, too long or about another resource is an
// error, and then nothing is known. No request is repeated by itself and no redirect is followed. Errors never contain the
// token.
//
// # What a server cannot tell
//
//   - A TTL is sent in whole seconds, rounded up: others wait at most a second longer.
//   - An owner must not begin or end with a space: the server would take it away, and two owners would be one.
//   - Metadata must not have a name twice in one object: requests are strict JSON.
//   - A lock belongs to the token that authenticated as well as to the owner. Principal in a request is ErrInvalid: the
//     server knows who asks. So is Grace: the server's own takeover grace is in force.
//   - AcquireResult.Takeover and Extended stay false; the record has no ID, Principal, RenewedAt or ReleasedAt.
//   - A holder that is in the way is its times and metadata: not its owner, with which one could release it, and not its
//     token. Its record's Remaining is how long the server advises to wait, takeover grace included.
//   - After a release or a force-release the record has the resource, and for a release the owner.
//   - The actor of a force-release is the principal, and the replica the one that was asked; what Force says is not sent.
//   - Purge and Now are errors.ErrUnsupported. A server purges by itself.
//
// # When things fail
//
// An error leaves the outcome unknown, as in package locking, unless it is ErrInvalid or ErrDenied. Requests that are not
// answered in 15 seconds end with an error. Ask again with the same owner: it gets the same grant. A release that is asked
// again may be ErrNotFound because the first one was served.
//
// # How to test
//
// The tests run package lockingtest's conformance suite over a listener with the server's handlers, and every odd answer
// against a listener that gives it.
package httplock
