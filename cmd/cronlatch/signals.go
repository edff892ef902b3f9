package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// endings turns SIGINT and SIGTERM into the two ways to end: the first one ends the context, the second one closes
// hurry. A third one kills the process, as without us.
func endings(parent context.Context) (ctx context.Context, hurry <-chan struct{}, stop func()) {
	ctx, cancel := context.WithCancel(parent)
	signals, hurried := make(chan os.Signal, 2), make(chan struct{})
	for _, sig := range []os.Signal{syscall.SIGINT, syscall.SIGTERM} {
		if !signal.Ignored(sig) { // a shell without job control lets what it runs in the background ignore Ctrl-C
			signal.Notify(signals, sig)
		}
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		inTurn(signals, cancel, func() {
			signal.Stop(signals)
			close(hurried)
		})
	})
	return ctx, hurried, func() {
		signal.Stop(signals)
		close(signals)
		wg.Wait()
		cancel()
	}
}

// inTurn calls one function for each signal, and returns after the last one or when signals is closed.
func inTurn(signals <-chan os.Signal, acts ...func()) {
	for _, act := range acts {
		if _, ok := <-signals; !ok {
			return
		}
		act()
	}
}

// survivePipes keeps the daemon alive when the reader of its log goes away: a write then is an error and no longer a
// deadly SIGPIPE. The signal is caught and not ignored, because jobs would inherit the ignoring.
func survivePipes() (stop func()) {
	pipes := make(chan os.Signal, 1)
	signal.Notify(pipes, syscall.SIGPIPE)
	return func() { signal.Stop(pipes) }
}
