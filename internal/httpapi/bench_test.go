package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cronlatch/cronlatch/internal/httpapi"
	"github.com/cronlatch/cronlatch/locking/lockingtest"
)

// What the API adds to a database's time: an acquire and a release on a store in memory, without a network.
func BenchmarkAcquireAndRelease(b *testing.B) {
	api := httpapi.New(httpapi.Options{Locks: lockingtest.NewMemory(time.Now)})
	send := func(method, body string, want int) {
		r := httptest.NewRequestWithContext(b.Context(), method, "/locks/report:monthly-2026-05", strings.NewReader(body))
		r.Host = "localhost"
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		api.ServeHTTP(w, r)
		if w.Code != want {
			b.Fatal(w.Code, w.Body)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		send(http.MethodPost, `{"owner": "worker-7/9f2c", "ttl_seconds": 30, "metadata": {"host": "web-3", "pid": 4711}}`, http.StatusOK)
		send(http.MethodDelete, `{"owner": "worker-7/9f2c"}`, http.StatusNoContent)
	}
}
