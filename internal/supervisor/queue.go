package supervisor

import "sync"

// queue decouples whoever has something to say from whoever is slow to take it: push never blocks. What bounds it is
// its use: at most two reports per run that the daemon asked for, one answer about its output, and orders of a daemon that
// kills a supervisor which does not answer.
type queue[T any] struct {
	mu     sync.Mutex
	filled *sync.Cond
	items  []T
	closed bool
}

func newQueue[T any]() *queue[T] {
	q := &queue[T]{}
	q.filled = sync.NewCond(&q.mu)
	return q
}

// push is a no-op on a closed queue.
func (q *queue[T]) push(item T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	q.items = append(q.items, item)
	q.filled.Signal()
}

// take waits for items and returns all of them; false when the queue is closed and empty.
func (q *queue[T]) take() ([]T, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.items) == 0 && !q.closed {
		q.filled.Wait()
	}
	items := q.items
	q.items = nil
	return items, len(items) > 0
}

func (q *queue[T]) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.filled.Broadcast()
}
