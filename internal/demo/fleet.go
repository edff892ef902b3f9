package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

const (
	// firstClaim is how long the other replicas wait for the first one to claim something, which takes a second.
	firstClaim = time.Minute
	// lastWords is how long replicas have to leave before they are killed.
	lastWords = 20 * time.Second
)

// replica is one of the three, through all of its processes.
type replica struct {
	name   string
	listen string
	url    string // "" before it is ready for the first time

	child       *child // nil: there is no process
	killed      bool   // the process was killed by the demo
	supervisors []int  // process numbers, which outlive a killed replica for as long as its locks
	killedAt    time.Time
}

// fleet is a running demo. All fields belong to the goroutine of run, which executes what others send as events.
type fleet struct {
	o        *Options
	dir      string
	replicas []*replica
	story    *story
	events   chan func()
	over     chan struct{} // closed when nobody executes events any more
	wg       sync.WaitGroup

	begun    bool // the others were started, too
	welcomed bool
	leaving  bool
	err      error
}

func newFleet(o *Options, dir string) *fleet {
	return &fleet{o: o, dir: dir, story: newStory(o.Say), events: make(chan func()), over: make(chan struct{})}
}

// send has f executed by run, unless that is over.
func (f *fleet) send(event func()) {
	select {
	case f.events <- event:
	case <-f.over:
	}
}

// after sends an event later, unless ctx ends before.
func (f *fleet) after(ctx context.Context, d time.Duration, event func()) {
	f.wg.Go(func() {
		select {
		case <-time.After(d):
			f.send(event)
		case <-ctx.Done():
		}
	})
}

func (f *fleet) run(ctx context.Context, control net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer f.wg.Wait()
	defer close(f.over)
	defer cancel()
	f.wg.Go(func() { f.serve(control) })
	defer func() { _ = control.Close() }()
	for i, name := range replicaNames() {
		f.replicas = append(f.replicas, &replica{name: name, listen: address(ctx, f.o.ListenBase, i)})
	}
	f.start(ctx, f.find(firstReplica))
	f.after(ctx, firstClaim, func() { f.begin(ctx) })
	for f.err == nil && ctx.Err() == nil {
		select {
		case event := <-f.events:
			event()
		case <-ctx.Done():
		}
	}
	cancel()
	f.leave()
	return f.err
}

func (f *fleet) find(name string) *replica {
	for _, r := range f.replicas {
		if r.name == name {
			return r
		}
	}
	return nil
}

// begin starts those that are not there yet.
func (f *fleet) begin(ctx context.Context) {
	if f.begun {
		return
	}
	f.begun = true
	for _, r := range f.replicas {
		if r.child == nil && !r.killed {
			f.start(ctx, r)
		}
	}
}

func (f *fleet) start(ctx context.Context, r *replica) {
	if f.leaving || r.child != nil || f.err != nil {
		return
	}
	r.killed = false
	c, err := f.o.startChild(ctx, r, f.dir, childEvents{
		audit: func(text []byte) {
			kept := bytes.Clone(text) // the reader goes on
			f.send(func() { f.heard(ctx, kept) })
		},
		ready:      func(url string) { f.send(func() { f.ready(r, url) }) },
		supervisor: func(pid int) { f.send(func() { r.supervisors = append(r.supervisors, pid) }) },
	})
	if err != nil {
		f.err = err
		return
	}
	r.child = c
	f.wg.Go(func() {
		err := c.wait()
		f.send(func() { f.ended(ctx, r, err) })
	})
}

func (f *fleet) heard(ctx context.Context, text []byte) {
	l, ok := f.story.tell(text)
	if ok && l.Action == "run.claim" {
		f.begin(ctx)
	}
}

func (f *fleet) ready(r *replica, url string) {
	again := r.url != ""
	r.url, r.listen = url, strings.TrimPrefix(url, "http://")
	if again {
		f.o.Say("replica %s is back at %s", r.name, url)
		return
	}
	f.o.Say("replica %s is up at %s", r.name, url)
	for _, other := range f.replicas {
		if other.url == "" {
			return
		}
	}
	f.welcome()
}

// welcome says how to look around.
func (f *fleet) welcome() {
	if f.welcomed {
		return
	}
	f.welcomed = true
	config := filepath.Join(f.dir, configName)
	holder := f.story.holder(func(string) bool { return true })
	if holder == "" {
		holder = firstReplica
	}
	f.o.Say("all three replicas are up. Look around in another terminal:")
	f.o.Say("  cronlatch --config %s runs list", config)
	f.o.Say("  cronlatch --config %s explain %s", config, jobBackup)
	f.o.Say("  cronlatch --config %s locks list", config)
	for _, r := range f.replicas {
		f.o.Say("  curl %s/readyz", r.url)
	}
	f.o.Say("and watch a takeover here: cronlatch demo kill %s", holder)
	f.o.Say("Ctrl-C ends the demo. What the replicas decide:")
}

// ended is told when a process is gone and all it said was heard.
func (f *fleet) ended(ctx context.Context, r *replica, err error) {
	r.child = nil
	switch {
	case f.leaving:
		return
	case r.url == "":
		f.err = errors.Join(fmt.Errorf("replica %s ended before it was ready; %s says why", r.name, filepath.Join(f.dir, r.name+".log")), err)
		return
	case !r.killed:
		f.o.Say("replica %s has ended by itself: %v", r.name, err)
		r.killedAt = time.Now()
	}
	r.killed = true
	f.story.left(r.name)
	f.o.Say("replica %s starts again in %s", r.name, f.o.Restart)
	f.after(ctx, f.o.Restart, func() { f.start(ctx, r) })
}

// serve answers those who ask for a kill.
func (f *fleet) serve(control net.Listener) {
	for {
		conn, err := control.Accept()
		if err != nil {
			return
		}
		f.wg.Go(func() { answer(conn, f.asked) })
	}
}

// asked has the question answered by run.
func (f *fleet) asked(q question) Killed {
	answers := make(chan Killed, 1)
	f.send(func() { answers <- f.kill(q.Kill) })
	select {
	case k := <-answers:
		return k
	case <-f.over:
		return Killed{Error: "the demo is ending"}
	}
}

func (f *fleet) kill(name string) Killed {
	if name == "" {
		name = f.story.holder(func(name string) bool { r := f.find(name); return r != nil && r.child != nil })
	}
	if name == "" {
		return Killed{Error: "no replica holds a lock at this moment; try again in a few seconds, or name one of a, b and c"}
	}
	r := f.find(name)
	switch {
	case r == nil:
		return Killed{Error: fmt.Sprintf("there is no replica %q; the demo has a, b and c", name)}
	case r.child == nil:
		return Killed{Error: fmt.Sprintf("replica %s is not running; it starts within %s", name, f.o.Restart)}
	}
	held := f.story.held(name)
	r.killed, r.killedAt = true, time.Now()
	if err := r.child.cmd.Process.Kill(); err != nil {
		return Killed{Error: fmt.Sprintf("killing replica %s: %v", name, err)}
	}
	f.o.Say("kill -9 of replica %s", name)
	return Killed{Replica: name, Held: held}
}

// leave ends all processes, and waits for them.
func (f *fleet) leave() {
	f.leaving = true
	f.o.Say("ending the replicas")
	patience, hurry := time.After(lastWords), f.o.Hurry
	f.each(func(c *child) { _ = polite(c.cmd.Process) }) // gone: it is reported
	for f.alive() {
		select {
		case event := <-f.events:
			event()
		case <-hurry:
			hurry = nil
			f.killAll()
		case <-patience:
			f.killAll()
		}
	}
	f.supervisorsEnd()
}

func (f *fleet) each(do func(*child)) {
	for _, r := range f.replicas {
		if r.child != nil {
			do(r.child)
		}
	}
}

// killAll leaves supervisors behind, which are waited for like those of any replica that was killed.
func (f *fleet) killAll() {
	for _, r := range f.replicas {
		if r.child != nil {
			r.killedAt = time.Now()
			_ = r.child.cmd.Process.Kill()
		}
	}
}

func (f *fleet) alive() (some bool) {
	f.each(func(*child) { some = true })
	return some
}

// supervisorsEnd waits for the supervisors of replicas that were killed a moment ago: each ends what is left of its jobs
// before the locks expire.
func (f *fleet) supervisorsEnd() {
	const pause, margin = 50 * time.Millisecond, 3 * time.Second
	for _, r := range f.replicas {
		until := r.killedAt.Add(lockTTL + margin)
		for _, pid := range r.supervisors {
			for time.Now().Before(until) && there(pid) {
				<-time.After(pause)
			}
		}
	}
}
