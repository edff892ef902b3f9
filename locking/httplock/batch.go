package httplock

import "sync"

// maxCalls is how many requests of one batch are on their way at once: enough for a beat of hundreds of locks, and no
// flood for a server that shares its database's connections among everybody.
const maxCalls = 16

// each runs do for 0 to n-1, at most maxCalls at a time, and returns their errors when all have ended.
func each(n int, do func(i int) error) []error {
	errs := make([]error, n)
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(n, maxCalls) {
		workers.Go(func() {
			for i := range next {
				errs[i] = do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	workers.Wait()
	return errs
}
