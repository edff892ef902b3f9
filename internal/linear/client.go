package linear

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/cronlatch/cronlatch/locking"
)

// maxPast is how many old claims the zombies choose from: some of them are still right, most are not.
const maxPast = 60

// client makes one call at a time.
type client struct {
	*drive

	number int
	store  locking.Store
	rnd    *rand.Rand
	left   int
	held   map[string]call // a renewal of what this client believes to hold, by resource
}

// step makes one call. It returns false after a call of unknown outcome that nobody hurried: the store is away, and more
// of them would only make the search longer.
func (c *client) step(ctx context.Context) bool {
	request := c.choose()
	cancel := func() {}
	hurried := c.rnd.IntN(1000) < c.Hurry
	if hurried {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(c.rnd.Int64N(int64(2*time.Millisecond))))
	}
	defer cancel()
	a := c.ask(ctx, c.number, c.store, request)
	c.learn(request, a)
	return a.verdict != unknown || hurried
}

func (c *client) choose() call {
	resource := c.resources[c.rnd.IntN(len(c.resources))]
	mine, holds := c.held[resource]
	switch n := c.rnd.IntN(100); {
	case n < 32:
		return c.acquisition(resource, mine.owner)
	case n < 52 && holds:
		return mine
	case n < 68 && len(c.held) > 0:
		return c.farewell()
	case n < 78:
		return call{verb: get, resource: resource}
	case n < 96:
		return c.zombie()
	default:
		return c.forced()
	}
}

// acquisition asks for a resource, sometimes with the owner that has it.
func (c *client) acquisition(resource, owner string) call {
	if owner == "" || c.rnd.IntN(3) > 0 {
		owner = fmt.Sprintf("client %d grant %d", c.number, c.owners.Add(1))
	}
	return call{verb: acquire, resource: resource, owner: owner, ttl: c.TTL}
}

// farewell releases something that is held. One holder in ten vanishes instead, and only reads.
func (c *client) farewell() call {
	names := slices.Sorted(maps.Keys(c.held))
	gone := c.held[names[c.rnd.IntN(len(names))]]
	if c.rnd.IntN(10) == 0 {
		delete(c.held, gone.resource)
		return call{verb: get, resource: gone.resource}
	}
	return call{verb: release, resource: gone.resource, owner: gone.owner, token: gone.token}
}

// zombie calls with an old claim, sometimes of somebody who never had it or without its token.
func (c *client) zombie() call {
	old, ok := c.old()
	if !ok {
		return call{verb: get, resource: c.resources[0]}
	}
	switch c.rnd.IntN(5) {
	case 0:
		old.owner = "a stranger"
	case 1:
		old.owner, old.token = "a stranger", 0
	case 2:
		old.token = 0
	case 3:
		old.token++
	}
	if c.rnd.IntN(2) == 0 {
		old.verb, old.ttl = release, 0
	}
	return old
}

func (c *client) forced() call {
	old, ok := c.old()
	if !ok || old.token == 0 {
		return call{verb: get, resource: c.resources[0]}
	}
	return call{verb: force, resource: old.resource, token: old.token, immediate: c.rnd.IntN(2) == 0}
}

func (c *client) old() (call, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.past) == 0 {
		return call{}, false
	}
	return c.past[c.rnd.IntN(len(c.past))], true
}

// learn keeps what the client may claim from now on.
func (c *client) learn(request call, a answer) {
	mine := c.held[request.resource].owner == request.owner
	switch {
	case request.verb == acquire && a.verdict == done:
		claim := request
		claim.verb, claim.token = renew, a.token
		c.held[request.resource] = claim
		c.remember(claim)
	case request.verb == acquire && a.verdict == unknown:
		claim := request
		claim.verb = renew
		c.remember(claim) // without a token: nobody told it
	case request.verb == release && mine && a.verdict != unknown, request.verb == renew && mine && a.verdict == lost:
		delete(c.held, request.resource)
	}
}

func (c *client) remember(claim call) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.past = append(c.past, claim); len(c.past) > maxPast {
		c.past = c.past[1:]
	}
}
