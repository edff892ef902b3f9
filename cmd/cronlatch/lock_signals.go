package main

import (
	"context"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"
)

// ignoredAtStart are the signals that the caller wants to have no effect: nohup ignores SIGHUP, a shell script SIGINT for
// what it runs in the background. The command is to ignore them as well.
//
//nolint:gochecknoglobals // once main has asked for its signals this can no longer be seen
var ignoredAtStart = slices.DeleteFunc(append(endingSignals(), otherSignals()...), func(s syscall.Signal) bool { return !signal.Ignored(s) })

// ignoredByCommand are the signals that the command is started with as ignored. SIGTSTP is, as under a shell without job
// control: a command that stood still would keep its lock, and programs that suspend themselves look at that. To continue
// what was stopped would not do: of a shell that is just starting a program, only the half-made program stops.
func ignoredByCommand() []syscall.Signal {
	return append(slices.Clone(ignoredAtStart), syscall.SIGTSTP)
}

// endingSignals ask a command to end; while it waits for its lock, they end the waiting.
func endingSignals() []syscall.Signal {
	return []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}
}

// otherSignals are the command's business, but for the last two, which are about the terminal.
func otherSignals() []syscall.Signal {
	return []syscall.Signal{syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH, syscall.SIGTSTP, syscall.SIGCONT}
}

// lockSignals are the signals that reach `cronlatch lock`, for the command to have.
type lockSignals struct {
	queue chan syscall.Signal
	over  context.Context // ends with the first signal that asks for the end
	first syscall.Signal  // ... which it was; read after over

	caught chan os.Signal
	reader sync.WaitGroup
	end    context.CancelFunc
}

// signalQueue is how many signals wait while the command is being started; more are dropped, as the kernel does.
const signalQueue = 32

func catchSignals() *lockSignals {
	s := &lockSignals{queue: make(chan syscall.Signal, signalQueue), caught: make(chan os.Signal, signalQueue)}
	s.over, s.end = context.WithCancel(context.Background())
	for _, sig := range append(endingSignals(), otherSignals()...) {
		if !slices.Contains(ignoredAtStart, sig) {
			signal.Notify(s.caught, sig)
		}
	}
	s.reader.Go(s.read)
	return s
}

func (s *lockSignals) read() {
	for caught := range s.caught {
		sig, ok := caught.(syscall.Signal)
		if !ok {
			continue
		}
		if s.over.Err() == nil && slices.Contains(endingSignals(), sig) {
			s.first = sig
			s.end()
		}
		select {
		case s.queue <- sig:
		default:
		}
	}
}

// whenOver calls f in a goroutine of its own as soon as a signal asks for the end, unless it is stopped before.
func (s *lockSignals) whenOver(f func()) (stop func() bool) { return context.AfterFunc(s.over, f) }

func (s *lockSignals) stop() {
	signal.Stop(s.caught)
	close(s.caught)
	s.reader.Wait()
	s.end()
}

// code is the exit code of a command that a signal ended before it had begun. The same signal ends the context of
// main, which may be seen a moment earlier.
func (s *lockSignals) code() int {
	select {
	case <-s.over.Done():
		return exitSignal + int(s.first)
	case <-time.After(signalDelay):
		return exitInterrupted
	}
}

// signalDelay is far more than a signal takes from one goroutine to another, on any machine. It passes only when something
// other than a signal ended the context of main.
const signalDelay = 10 * time.Second
