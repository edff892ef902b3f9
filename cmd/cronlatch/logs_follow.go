package main

import (
	"context"
	"net/url"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/cronlatch/cronlatch/internal/wire"
)

// logEvery is how often a run that is followed is asked for new output.
const logEvery = 400 * time.Millisecond

// logPiece is how much one call asks for.
const logPiece = 256 << 10

// logReader shows the output of a run, piece by piece, through the API of any replica or of the database.
type logReader struct {
	a      *app
	api    *api
	run    int64
	offset int64 // of the first byte that was not shown

	show   func(wire.Output) error // a piece that has data or a gap
	begun  []byte                  // the beginning of a character, kept for a terminal until the rest comes
	line   bool                    // the last byte that was shown ended a line, or none was
	silent bool                    // the user was told that there is no answer
	held   bool                    // the user was told that a person must decide
	waits  bool                    // the user was told that the run has not begun
}

// newLogReader shows a run from its first byte on, as text on stdout.
func (a *app) newLogReader(c *api, run int64) *logReader {
	r := &logReader{a: a, api: c, run: run, line: true}
	r.show = r.text
	return r
}

// next asks once, and shows what came.
func (r *logReader) next(ctx context.Context) (wire.Output, error) {
	calls, cancel := context.WithTimeout(ctx, r.a.Patience)
	defer cancel()
	var p wire.Output
	query := url.Values{"offset": {strconv.FormatInt(r.offset, 10)}, "limit": {strconv.Itoa(logPiece)}}
	if err := r.api.get(calls, outputPath(r.run), query, &p); err != nil {
		return p, err
	}
	if p.MissingBytes > 0 {
		r.a.say("... %d bytes are not kept here ...", p.MissingBytes)
	}
	if p.NextOffset > r.offset {
		if err := r.show(p); err != nil {
			return p, err
		}
	}
	r.offset = p.NextOffset
	return p, nil
}

// catchUp shows all that there is by now, and returns the last answer.
func (r *logReader) catchUp(ctx context.Context) (wire.Output, error) {
	for {
		p, err := r.next(ctx)
		if err != nil || len(p.Data) == 0 {
			return p, err
		}
	}
}

// follow shows the run until it has ended and nothing more follows it. Only the first question must be answered at once.
func (r *logReader) follow(ctx context.Context) error {
	tick := time.NewTicker(logEvery)
	defer tick.Stop()
	for first := true; ; first = false {
		over, err := r.look(ctx)
		switch {
		case ctx.Err() != nil:
			_ = r.close() // the answer is that it was interrupted
			return fail(exitInterrupted, "not following any longer; the run goes on").
				withHint("`cronlatch logs %d -f --offset %d` goes on from here", r.run, r.offset)
		case err == nil && over:
			return r.close()
		case err != nil && (first || !isAway(err)):
			return err
		case err != nil && !r.silent:
			r.silent = true
			r.a.say("%s does not answer; waiting, and going on from byte %d", r.api.where, r.offset)
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// look shows what is new, and reports whether the run is over. A further attempt takes its place.
func (r *logReader) look(ctx context.Context) (over bool, err error) {
	p, err := r.catchUp(ctx)
	if err != nil {
		return false, err
	}
	if r.silent {
		r.silent = false
		r.a.say("%s answers again", r.api.where)
	}
	if p.State == "held" && !r.held {
		r.held = true
		r.a.say("run %d is held: the attempt before it was lost, and a person must decide", r.run)
	}
	if p.State == "pending" && !r.waits {
		r.waits = true
		r.sayWhyNothing(&p)
	}
	if !p.Ended || p.NextRunID == nil {
		if p.Ended {
			r.sayWhyNothing(&p)
		}
		return p.Ended, nil
	}
	if err := r.close(); err != nil {
		return false, err
	}
	r.a.say("run %d has ended; the next attempt follows as run %d", r.run, *p.NextRunID)
	r.run, r.offset, r.held, r.waits = *p.NextRunID, 0, false, false
	return false, nil
}

// sayWhyNothing says of a run that has printed nothing why that is: silence looks like an answer that is missing.
func (r *logReader) sayWhyNothing(p *wire.Output) {
	switch {
	case p.TotalBytes > 0:
	case p.State == "pending":
		r.a.say("run %d has not begun; `cronlatch explain %d` tells what it waits for", r.run, r.run)
	case p.Ended:
		r.a.say("run %d has ended, and there is no output of it; `cronlatch explain %d` tells what became of it", r.run, r.run)
	}
}

// text shows the job's bytes as they are, unless they go to a terminal that would act on them.
func (r *logReader) text(p wire.Output) error {
	data := p.Data
	if r.a.Terminal {
		if p.MissingBytes > 0 {
			r.begun = nil
		}
		data = append(r.begun, data...)
		whole := wholeCharacters(data)
		data, r.begun = data[:whole], append([]byte(nil), data[whole:]...)
	}
	if len(data) == 0 {
		return nil
	}
	r.line = data[len(data)-1] == '\n'
	return r.a.showBytes(data)
}

// close shows what was kept back, and ends the line on a terminal: what is said next begins one.
func (r *logReader) close() error {
	rest := r.begun
	if r.begun = nil; len(rest) > 0 {
		if err := r.a.showBytes(rest); err != nil {
			return err
		}
		r.line = false
	}
	if r.line || !r.a.Terminal {
		return nil
	}
	r.line = true
	return r.a.showBytes([]byte("\n"))
}

// wholeCharacters is how many bytes of b are not the beginning of a character that goes on behind it.
func wholeCharacters(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if c := b[len(b)-n]; utf8.RuneStart(c) {
			if !utf8.FullRune(b[len(b)-n:]) {
				return len(b) - n
			}
			break
		}
	}
	return len(b)
}
