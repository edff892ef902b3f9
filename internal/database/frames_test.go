package database

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func message(kind byte, body string) []byte {
	head := []byte{kind, 0, 0, 0, 0}
	binary.BigEndian.PutUint32(head[1:], uint32(len(body)+4))
	return append(head, body...)
}

// However the network cuts the stream, frames sees the same.
func TestFramesInAnyPieces(t *testing.T) {
	t.Parallel()
	stream := bytes.Join([][]byte{
		message('T', "row description"), message('D', string(bytes.Repeat([]byte("x"), 3000))), message('N', "SWARNING\x00C01000\x00\x00"),
		message('E', "SFEHLER\x00VERROR\x00C40001\x00M"+string(bytes.Repeat([]byte("x"), 3000))+"\x00\x00"), message('E', "C00000\x00\x00"),
		message('C', "ROLLBACK\x00"), message('Z', "E"), message('S', "TimeZone\x00UTC\x00"),
	}, nil)
	for size := range 40 {
		var f frames
		for piece := range chunks(stream, size+1) {
			f.feed(piece)
		}
		require.True(t, f.boundary(), size)
		assert.Equal(t, "ROLLBACK", f.tag)
		assert.Equal(t, byte('E'), f.status)
		assert.True(t, f.ready, "a parameter after ReadyForQuery answers nothing")
		assert.Equal(t, "ERROR", f.answered().severity)
		assert.Equal(t, "40001", f.answered().code, "the first error counts")
		f.feed(stream[:10])
		assert.False(t, f.boundary())
	}
}

func TestFramesKeepTheProcessNumber(t *testing.T) {
	t.Parallel()
	var f frames
	f.feed(message('K', "\x80\x00\x00\x01secret, of any length"))
	f.feed(message('Z', "I"))
	f.reset()
	assert.EqualValues(t, -1<<31+1, f.backend, "a pooler's own may be negative")
	f.feed(message('K', "\x01"))
	assert.True(t, f.boundary())
}

// Poolers answer without the field V.
func TestFramesReadThePoolersErrors(t *testing.T) {
	t.Parallel()
	var f frames
	f.feed(message('E', "SFATAL\x00C08P01\x00Mserver conn crashed?\x00\x00"))
	assert.Equal(t, &answer{severity: "FATAL", code: "08P01", message: "server conn crashed?"}, f.answered())
}

// Where the session is over, the outcome of the statement is not known.
func TestAnswersThatEndASession(t *testing.T) {
	t.Parallel()
	for _, a := range []answer{{"FATAL", "57P01", ""}, {"PANIC", "XX000", ""}, {"ERROR", "08006", ""}, {"FATAL", "08P01", ""}} {
		assert.True(t, ends(a.severity, a.code), a)
	}
	for _, a := range []answer{{"ERROR", "23505", ""}, {"ERROR", "57014", ""}, {"ERROR", "25006", ""}, {"", "40001", ""}} {
		assert.False(t, ends(a.severity, a.code), a)
	}
}

func chunks(b []byte, size int) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for len(b) > 0 {
			n := min(size, len(b))
			if !yield(b[:n]) {
				return
			}
			b = b[n:]
		}
	}
}

func TestFramesSeeThatAnAnswerGoesOn(t *testing.T) {
	t.Parallel()
	for _, next := range [][]byte{message('D', ""), message('C', "SELECT 1\x00"), message('1', ""), message('E', "\x00")} {
		var f frames
		f.feed(message('Z', "I"))
		require.True(t, f.ready)
		f.feed(next)
		assert.False(t, f.ready, "%q", next)
	}
}

func FuzzFrames(f *testing.F) {
	f.Add(message('E', "VFATAL\x00C57P01\x00\x00"))
	f.Add([]byte("HTTP/1.1 400"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		var whole, bytewise frames
		whole.feed(stream)
		for i := range stream {
			bytewise.feed(stream[i : i+1])
		}
		assert.Equal(t, whole, bytewise)
		whole.answered()
	})
}
