package supervisor

import (
	"os"
	"time"
)

const (
	readSize = 32 << 10
	// drainDelay is how long output is still read when the tree is dead: what the pipe holds is there at once, and
	// only a process outside of the tree can keep it open.
	drainDelay = 500 * time.Millisecond
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

// capture reads a run's output until its end. Its window belongs to the reading goroutine until done is called.
type capture struct {
	r      *os.File
	window window
}

func (c *capture) run(done func()) {
	buf := make([]byte, readSize)
	for {
		n, err := c.r.Read(buf)
		c.window.write(buf[:n])
		if err != nil { // the end, or finish's deadline
			break
		}
	}
	done()
}

// finish makes run end soon. The tree is dead.
func (c *capture) finish() {
	if err := c.r.SetReadDeadline(time.Now().Add(drainDelay)); err != nil {
		_ = c.r.Close() // not pollable: the only other way to end a blocked read
	}
}
