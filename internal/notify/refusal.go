package notify

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// refusedError is an answer that says no.
type refusedError struct {
	text    string
	wait    time.Duration // the other side asked to be left alone for this long
	content bool          // it may be what was sent that is refused, and not that it was
}

func (e *refusedError) Error() string { return e.text }

// refusedBy is an answer that is not 2xx.
func refusedBy(answer *http.Response, now time.Time) *refusedError {
	code := answer.StatusCode
	e := &refusedError{text: fmt.Sprintf("the server answered %d", code)}
	switch {
	case code/100 == 3:
		e.text += ", and redirects are not followed"
	case code == http.StatusTooManyRequests || code == http.StatusServiceUnavailable:
		e.wait = retryAfter(answer.Header.Get("Retry-After"), now)
	}
	e.content = slices.Contains([]int{
		http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity, http.StatusInternalServerError,
	}, code)
	return e
}

// retryAfter is what the header of that name says: seconds or a date (RFC 9110, 10.2.3). The other side does not decide that
// nobody hears of anything for longer than the longest pause.
func retryAfter(header string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(header, 10, 31); err == nil {
		return min(time.Duration(seconds)*time.Second, longestPause)
	}
	if at, err := http.ParseTime(header); err == nil {
		return min(max(at.Sub(now), 0), longestPause)
	}
	return 0
}
