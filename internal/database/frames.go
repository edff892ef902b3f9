package database

import (
	"bytes"
	"cmp"
	"encoding/binary"
)

// frameCapture is how much of a message's body is kept: enough for a command tag and for the head of an error, where
// the server puts severity and SQLSTATE.
const frameCapture = 512

// frames follows the server's messages as they pass through the wire (PostgreSQL's protocol 3.0: one type byte, a
// length, a body). It is what the guard trusts where pgdriver drops information: the command tag of COMMIT, the
// transaction state, the SQLSTATE of an error that is too long for pgdriver's buffer, and whether the answer is over.
type frames struct {
	header [5]byte
	have   int // bytes of header
	left   int // bytes of the body still to come
	body   []byte

	backend int32  // process number in BackendKeyData; a pooler's own invention when there is one
	tag     string // of the last CommandComplete
	status  byte   // of the last ReadyForQuery: I idle, T in a transaction, E in a failed one
	ready   bool   // the last message that answers something was ReadyForQuery
	broken  bool   // this is not PostgreSQL's protocol
	// notified says that a notification came since it was last set to false: see Listener.
	notified bool
	problem  *answer
}

// answer is an ErrorResponse as far as it was kept.
type answer struct{ severity, code, message string }

// reset forgets the last call's answer.
func (f *frames) reset() { f.tag, f.ready, f.problem = "", false, nil }

// answered is the error that the server answered with, nil when there is none. It may still be on its way: its head is
// enough.
func (f *frames) answered() *answer {
	if f.problem == nil && f.have == len(f.header) && f.header[0] == 'E' {
		return readAnswer(f.body)
	}
	return f.problem
}

// boundary reports whether no message is half read.
func (f *frames) boundary() bool { return !f.broken && f.have == 0 }

func (f *frames) feed(p []byte) {
	for len(p) > 0 && !f.broken {
		if f.have < len(f.header) {
			n := copy(f.header[f.have:], p)
			f.have += n
			p = p[n:]
			if f.have == len(f.header) {
				f.start()
			}
			continue
		}
		n := min(f.left, len(p))
		f.body = append(f.body, p[:min(n, frameCapture-len(f.body))]...)
		f.left -= n
		p = p[n:]
		f.complete()
	}
}

func (f *frames) start() {
	length := int32(binary.BigEndian.Uint32(f.header[1:]))
	if length < 4 {
		f.broken = true
		return
	}
	f.left = int(length) - 4
	f.body = f.body[:0]
	f.complete()
}

// complete looks at the message once its body is there.
func (f *frames) complete() {
	if f.left > 0 {
		return
	}
	f.have = 0
	switch f.header[0] {
	case 'N', 'S': // notices and parameters come at any time and answer nothing
	case 'A': // so do notifications
		f.notified = true
	case 'Z':
		f.ready = true
		if len(f.body) == 1 {
			f.status = f.body[0]
		}
	case 'K':
		f.ready = false
		if len(f.body) >= 4 {
			f.backend = int32(binary.BigEndian.Uint32(f.body))
		}
	case 'C':
		f.ready = false
		f.tag = string(bytes.TrimRight(f.body, "\x00"))
	case 'E':
		f.ready = false
		if f.problem == nil {
			f.problem = readAnswer(f.body)
		}
	default:
		f.ready = false
	}
}

// readAnswer reads the fields of an ErrorResponse: a type byte and a text, each ended by NUL. Poolers leave out V, the
// severity that is never translated, and have S alone.
func readAnswer(body []byte) *answer {
	a := &answer{}
	for field := range bytes.SplitSeq(body, []byte{0}) {
		if len(field) == 0 {
			break
		}
		switch field[0] {
		case 'V':
			a.severity = string(field[1:])
		case 'S':
			a.severity = cmp.Or(a.severity, string(field[1:]))
		case 'C':
			a.code = string(field[1:])
		case 'M':
			a.message = string(field[1:])
		}
	}
	return a
}
