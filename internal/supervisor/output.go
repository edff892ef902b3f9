package supervisor

import (
	"os"
	"sync"
	"time"

	"github.com/cronlatch/cronlatch/internal/mask"
)

const (
	readSize = 32 << 10
	// drainDelay is how long output is still read when the tree is dead: what the pipe holds is there at once, and
	// only a process outside of the tree can keep it open.
	drainDelay = 500 * time.Millisecond
	// chunkSize is the most that one look at the output of a running command answers. The daemon asks, and asks again when
	// it has the answer: a command that prints a gigabyte a second makes no more reports than one that prints a line.
	chunkSize = 64 << 10
)

// window keeps the first and the last bytes of a stream, in memory that does not grow with the stream.
type window struct {
	headMax, tailMax int
	head, tail       []byte
	next             int // where the oldest byte of a full tail is
	total            int64
}

func (w *window) write(p []byte) {
	w.total += int64(len(p))
	if room := w.headMax - len(w.head); room > 0 {
		n := min(room, len(p))
		w.head = append(w.head, p[:n]...)
		p = p[n:]
	}
	w.writeTail(p)
}

func (w *window) writeTail(p []byte) {
	if len(p) > w.tailMax {
		p = p[len(p)-w.tailMax:]
	}
	if room := w.tailMax - len(w.tail); room > 0 {
		n := min(room, len(p))
		w.tail = append(w.tail, p[:n]...)
		p = p[n:]
	}
	for len(p) > 0 { // the tail is full: overwrite from its oldest byte on
		n := copy(w.tail[w.next:], p)
		w.next = (w.next + n) % len(w.tail)
		p = p[n:]
	}
}

func (w *window) output() Output {
	tail := append(append([]byte(nil), w.tail[w.next:]...), w.tail[:w.next]...)
	return Output{Head: w.head, Tail: tail, Total: w.total}
}

// since is the kept output from a byte on, at most limit bytes in one piece. What was dropped is left out, which the offset
// of the piece tells; then the newest bytes follow, because the oldest that are kept will have been dropped by the next look.
func (w *window) since(offset int64, limit int) Chunk {
	c := Chunk{At: min(max(offset, 0), w.total), Total: w.total}
	if head := int64(len(w.head)); c.At < head {
		c.Data = clone(w.head[c.At:min(head, c.At+int64(limit))])
		return c
	}
	if oldest := w.total - int64(len(w.tail)); c.At < oldest {
		c.At = w.total - int64(min(limit, len(w.tail)))
	}
	n := min(limit, int(w.total-c.At))
	from := (w.next + len(w.tail) - int(w.total-c.At)) % max(len(w.tail), 1)
	c.Data = make([]byte, 0, n)
	for len(c.Data) < n {
		part := w.tail[from:min(len(w.tail), from+n-len(c.Data))]
		c.Data, from = append(c.Data, part...), 0
	}
	return c
}

func clone(b []byte) []byte { return append([]byte(nil), b...) }

// capture reads a run's output until its end.
type capture struct {
	r *os.File

	mask *mask.Masker // the reading goroutine's

	mu     sync.Mutex
	window window
}

func (c *capture) write(p []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.window.write(p)
}

func (c *capture) since(offset int64) Chunk {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.window.since(offset, chunkSize)
}

// output is all that is kept; after the end of run.
func (c *capture) output() Output {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.window.output()
}

func (c *capture) run(done func()) {
	buf := make([]byte, readSize)
	for {
		n, err := c.r.Read(buf)
		c.mask.Write(buf[:n], c.write)
		if err != nil { // the end, or finish's deadline
			break
		}
	}
	c.mask.Flush(c.write)
	done()
}

// finish makes run end soon. The tree is dead.
func (c *capture) finish() {
	if err := c.r.SetReadDeadline(time.Now().Add(drainDelay)); err != nil {
		_ = c.r.Close() // not pollable: the only other way to end a blocked read
	}
}
