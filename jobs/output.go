package jobs

// MaxChunk is the most that one look at the output of a running attempt gives, in bytes.
const MaxChunk = 64 << 10

// Chunk is a piece of the output of a running attempt. What is printed faster than somebody looks is dropped from the middle:
// then At is larger than what was asked for.
type Chunk struct {
	At    int64 // of the first byte, counted from the first one of the output
	Data  []byte
	Total int64 // how much was printed so far
}

// OutputPart is a piece of what a run has printed, without a gap in it.
type OutputPart struct {
	Run   Run
	At    int64 // of the first byte; larger than what was asked for when the bytes between are not kept
	Data  []byte
	Total int64 // how much is known to have been printed
	// Ended says that nothing is added any more.
	Ended bool
	// Next is the run that is the next attempt at the same occurrence; 0 when there is none, or not yet.
	Next int64
}

// End is where the piece after this one begins.
func (p *OutputPart) End() int64 { return p.At + int64(len(p.Data)) }

// piece is a piece of stored output.
type piece struct {
	At   int64  `bun:"at_byte"`
	Data []byte `bun:"data"`
}

// pieces are the two ends of what is kept of a run that has ended.
func (o *Output) pieces() []piece {
	return []piece{{0, o.Head}, {o.Total - int64(len(o.Tail)), o.Tail}}
}

// cut is the first piece that has something from offset on, joined with those that follow without a gap, at most limit bytes.
// Without one, it is nothing behind all that was printed.
func cut(pieces []piece, offset, total int64, limit int) (at int64, data []byte) {
	for _, p := range pieces {
		end := p.At + int64(len(p.Data))
		if end <= offset || len(p.Data) == 0 {
			continue
		}
		if data == nil {
			at = max(p.At, offset)
		} else if p.At > at+int64(len(data)) {
			break
		}
		if got := at + int64(len(data)); end > got { // else it was handed in twice
			data = append(data, p.Data[got-p.At:]...)
		}
		if len(data) >= limit {
			return at, data[:limit]
		}
	}
	if data == nil {
		at = max(offset, total)
	}
	return at, data
}
