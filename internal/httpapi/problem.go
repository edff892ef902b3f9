package httpapi

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
)

// problem is an answer that is not the wanted one (RFC 9457). Code is stable; Detail may change.
type problem struct {
	Type      string `json:"type"`
	Title     string `json:"title"`
	Status    int    `json:"status"`
	Code      string `json:"code"`
	Detail    string `json:"detail"`
	RequestID string `json:"request_id"`
	// Errors are what is wrong with single fields, parameters or the name in the path: all of it at once.
	Errors []fieldError `json:"errors,omitempty"`
	// RunID is the run that is in the way; 0 is none.
	RunID int64 `json:"run_id,omitempty"`

	retryAfter int // seconds; 0 is no header
}

// fieldError is one thing wrong with one field. Code is stable.
type fieldError struct {
	Field   string `json:"field"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

// Error makes a problem what a handler returns.
func (p *problem) Error() string { return p.Code + ": " + p.Detail }

func unavailable(p problem) *problem {
	p.Status, p.retryAfter = http.StatusServiceUnavailable, 1
	return &p
}

// noRoute is a code of its own: a client with a wrong base address must not read that there is no such lock.
func noRoute() *problem {
	return &problem{Status: http.StatusNotFound, Code: "no_route", Detail: "there is nothing under this path"}
}

func writeProblem(w http.ResponseWriter, r *http.Request, p problem) {
	if p.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(p.retryAfter))
	}
	p.Type, p.Title, p.RequestID = "about:blank", http.StatusText(p.Status), idOf(r)
	writeJSON(w, "application/problem+json", p.Status, p)
}

func writeStatus(w http.ResponseWriter, status string) {
	writeJSON(w, "application/json", http.StatusOK, map[string]string{"status": status})
}

// writeJSON ignores the error of writing: the client went away, and there is nobody to tell.
func writeJSON(w http.ResponseWriter, contentType string, status int, v any) {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

type requestIDKey struct{}

func idOf(r *http.Request) string {
	id, _ := r.Context().Value(requestIDKey{}).(string)
	return id
}

// goodID is what is taken over from a client: anything else could shape a log line or a header.
var goodID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

func requestID(r *http.Request) string {
	if id := r.Header.Get("X-Request-Id"); goodID.MatchString(id) {
		return id
	}
	return rand.Text()
}
