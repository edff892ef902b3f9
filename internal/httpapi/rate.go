package httpapi

import (
	"math"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// How many runs one caller may start: enough for any script, and too few to fill the ledger by accident.
const (
	startsPerSecond = 10
	startsAtOnce    = 50
)

// startLimits counts the starts of each caller. Who calls has a token, so that there are few of them.
type startLimits struct {
	mu sync.Mutex
	by map[string]*rate.Limiter
}

// wait is 0 when the caller may start one more now, else how long until it may.
func (l *startLimits) wait(who string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.by == nil {
		l.by = map[string]*rate.Limiter{}
	}
	limiter := l.by[who]
	if limiter == nil {
		limiter = rate.NewLimiter(startsPerSecond, startsAtOnce)
		l.by[who] = limiter
	}
	r := limiter.Reserve()
	if d := r.Delay(); d > 0 {
		r.Cancel()
		return d
	}
	return 0
}

func tooMany(wait time.Duration) error {
	return &problem{
		Status: http.StatusTooManyRequests, Code: "rate", Detail: "too many runs were started with this token; wait a moment",
		retryAfter: int(math.Ceil(wait.Seconds())),
	}
}
