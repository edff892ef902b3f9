package httplock

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/cronlatch/cronlatch/locking"
)

// ErrDenied says that the server did not serve the request because of who sent it: no token, one that is not valid (any
// more), or one that does not allow this. Nothing was changed.
var ErrDenied = errors.New("httplock: not permitted")

// The codes with which a server states a fact about a lock.
const (
	codeNotFound     = "not_found"
	codeNotOwner     = "not_owner"
	codeNotRenewable = "not_renewable"
	codeStaleToken   = "stale_token"
)

// StatusError is an answer that is not the wanted one. errors.Is finds ErrDenied (401, 403) or locking.ErrInvalid (400,
// 413, 422) in it; otherwise the outcome of the request is unknown.
type StatusError struct {
	Status    int    // of HTTP
	Code      string // of the problem (RFC 9457), stable; "" when the answer is not one: it came from something else
	Detail    string // for people; "" when the answer is not a problem
	RequestID string // under which the server's log has the details
}

func (e *StatusError) Error() string {
	if e.Code == "" {
		return fmt.Sprintf("the server answered %d without saying why; is it cronlatch?", e.Status)
	}
	text := fmt.Sprintf("the server answered %d (%s): %s", e.Status, e.Code, e.Detail)
	if e.RequestID != "" {
		text += " [request " + e.RequestID + "]"
	}
	return text
}

// Is classifies the answer.
func (e *StatusError) Is(target error) bool {
	switch target {
	case ErrDenied:
		return e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden
	case locking.ErrInvalid:
		return e.Code != "" && (e.Status == http.StatusUnprocessableEntity || e.Status == http.StatusBadRequest ||
			e.Status == http.StatusRequestEntityTooLarge)
	}
	return false
}

// isCode reports whether err is a problem with the status and one of the codes. A page of a proxy never is.
func isCode(err error, status int, codes ...string) bool {
	e, ok := errors.AsType[*StatusError](err)
	return ok && e.Status == status && slices.Contains(codes, e.Code)
}

// problemOf reads an answer that is not the wanted one.
func problemOf(resp *http.Response, text []byte) error {
	e := &StatusError{Status: resp.StatusCode}
	var p struct {
		Code      string `json:"code"`
		Detail    string `json:"detail"`
		RequestID string `json:"request_id"`
		Errors    []struct {
			Field   string `json:"field"`
			Message string `json:"message"`
		} `json:"errors"`
	}
	if hasType(resp, "application/problem+json") && json.Unmarshal(text, &p) == nil {
		e.Code, e.Detail, e.RequestID = p.Code, p.Detail, p.RequestID
		for _, f := range p.Errors {
			e.Detail += "; " + f.Field + ": " + f.Message
		}
		e.Detail = strings.TrimPrefix(e.Detail, "; ")
	}
	return e
}

func hasType(resp *http.Response, want string) bool {
	got, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return err == nil && got == want
}
