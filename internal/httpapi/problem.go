package httpapi

import (
	"crypto/rand"
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"strings"
)

// problem is an answer that is not the wanted one (RFC 9457). Code is stable; Detail may change.
type problem struct {
	Type      string `json:"type"`
	Title     string `json:"title"`
	Status    int    `json:"status"`
	Code      string `json:"code"`
	Detail    string `json:"detail"`
	RequestID string `json:"request_id"`
}

func writeProblem(w http.ResponseWriter, r *http.Request, p problem) {
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

// hostAllowed refuses names on a loopback listener that are not loopback themselves: a page whose name was rebound to
// 127.0.0.1 sends its own name. Without a known local address (a test) the rule holds as well.
func hostAllowed(r *http.Request) bool {
	if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
		if at, err := netip.ParseAddrPort(local.String()); err == nil && !at.Addr().Unmap().IsLoopback() {
			return true
		}
	}
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
	return err == nil && addr.Unmap().IsLoopback()
}
