package httpapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"go.uber.org/zap"
)

// The limits of one connection. A client needs milliseconds; whoever is slower is broken or hostile.
const (
	headerTimeout   = 5 * time.Second  // until the request line and headers are there
	readTimeout     = 10 * time.Second // until the body is there, too
	writeTimeout    = readTimeout + storeTimeout + 5*time.Second
	idleTimeout     = 60 * time.Second
	shutdownTimeout = 5 * time.Second // for requests that are under way at the end

	maxHeaderBytes = 16 << 10
	// netHTTPSlop is what net/http allows on top of Server.MaxHeaderBytes.
	netHTTPSlop = 4 << 10
)

// Serve answers on the listener until ctx ends; then it lets requests under way finish for a short time and returns
// nil. It closes the listener. An error says that the listener broke.
func Serve(ctx context.Context, l net.Listener, h http.Handler) error {
	server := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes - netHTTPSlop,
		ErrorLog:          errorLog(h),
		// Otherwise net/http answers "OPTIONS *" by itself, past the check of hosts.
		DisableGeneralOptionsHandler: true,
		// Requests are not ended with ctx: the ones under way are answered first.
		BaseContext: func(net.Listener) context.Context { return context.WithoutCancel(ctx) },
	}
	stopped := make(chan error, 1)
	cancel := context.AfterFunc(ctx, func() { stopped <- shutdown(ctx, server) })
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		if !cancel() {
			<-stopped
		}
		return fmt.Errorf("serving HTTP: %w", err)
	}
	return <-stopped
}

// shutdown waits for requests under way, then closes what is left.
func shutdown(ctx context.Context, server *http.Server) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if server.Shutdown(ctx) == nil {
		return nil
	}
	if err := server.Close(); err != nil {
		return fmt.Errorf("closing HTTP connections: %w", err)
	}
	return nil
}

// errorLog keeps net/http's own complaints (accept errors, broken clients) in the daemon's log, and off stderr.
func errorLog(h http.Handler) *log.Logger {
	a, ok := h.(*api)
	if !ok {
		return log.New(io.Discard, "", 0)
	}
	std, err := zap.NewStdLogAt(a.log, zap.DebugLevel)
	if err != nil { // only an unknown level
		return log.New(io.Discard, "", 0)
	}
	return std
}
