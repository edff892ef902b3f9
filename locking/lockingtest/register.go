package lockingtest

import "sync"

// Register is a resource that checks fencing tokens: what every storage must do that a paused holder could still reach.
// It accepts a write when no higher token has written before. The zero value is empty and safe for concurrent use.
type Register struct {
	mu     sync.Mutex
	token  int64
	value  string
	writes []int64
}

// Write stores value for the holder with token, and reports whether it was accepted.
func (r *Register) Write(token int64, value string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if token < r.token {
		return false
	}
	r.token, r.value = token, value
	r.writes = append(r.writes, token)
	return true
}

// Value is what was written last.
func (r *Register) Value() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.value
}

// Accepted are the tokens of the accepted writes in their order; they never decrease.
func (r *Register) Accepted() []int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]int64(nil), r.writes...)
}
