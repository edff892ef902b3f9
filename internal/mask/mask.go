// Package mask hides secrets in a stream of output.
//
// Model: a Masker sits between who prints and what is kept. Wherever a secret stands, *** comes out in its place. It works on
// the stream before anything is cut into pieces, so that a secret is found however it was written: in one piece or byte by
// byte. Offsets in the output are those of what comes out.
//
// Guarantees: no text of the list comes out whole. What cannot be the beginning of a secret comes out at once; the rest is held
// back until it can be told, and comes out with Flush.
//
// Not guaranteed: a secret that a command encodes in a way of its own (encrypted, reversed, split by line breaks, inside of a
// longer base64 text) is not found. Texts shorter than Shortest are not hidden: they would tear holes into every output.
//
// Tests compare with replacing in the whole text, for any way to cut it.
package mask

import (
	"bytes"
	"encoding/base64"
	"net/url"
	"slices"
	"strings"
)

// Shortest is the length of the shortest text that is hidden.
const Shortest = 6

const stars = "***"

// Forms are the texts by which the secrets may stand in an output: as they are, without the space around them, and encoded as
// base64 or for a URL. Those that are too short are left out.
func Forms(secrets []string) [][]byte {
	var forms [][]byte
	for _, s := range secrets {
		for _, text := range []string{s, strings.TrimSpace(s)} {
			raw := []byte(text)
			for _, form := range []string{
				text, url.QueryEscape(text), url.PathEscape(text),
				base64.RawStdEncoding.EncodeToString(raw), base64.StdEncoding.EncodeToString(raw),
				base64.RawURLEncoding.EncodeToString(raw), base64.URLEncoding.EncodeToString(raw),
			} {
				if len(strings.TrimSpace(s)) >= Shortest {
					forms = append(forms, []byte(form))
				}
			}
		}
	}
	slices.SortFunc(forms, bytes.Compare)
	return slices.CompactFunc(forms, bytes.Equal)
}

// Masker hides texts in one stream. A nil Masker hides nothing. It is not safe for use by several goroutines.
type Masker struct {
	secrets [][]byte // the longest first
	held    []byte   // may be the beginning of a secret
}

// New hides the texts, as Forms makes them. It is nil when there are none.
func New(texts [][]byte) *Masker {
	m := &Masker{}
	for _, t := range texts {
		if len(t) >= Shortest {
			m.secrets = append(m.secrets, t)
		}
	}
	if len(m.secrets) == 0 {
		return nil
	}
	slices.SortStableFunc(m.secrets, func(a, b []byte) int { return len(b) - len(a) })
	return m
}

// Write takes the next bytes of the stream and calls emit with what can be told of them. emit must not keep its argument.
func (m *Masker) Write(p []byte, emit func([]byte)) {
	if m == nil {
		emit(p)
		return
	}
	text := p
	if len(m.held) > 0 {
		text = slices.Concat(m.held, p)
	}
	rest := m.hide(text, emit, m.uncertain)
	m.held = append([]byte(nil), rest...)
}

// Flush calls emit with what was held back: the stream has ended.
func (m *Masker) Flush(emit func([]byte)) {
	if m == nil || len(m.held) == 0 {
		return
	}
	if rest := m.hide(m.held, emit, func(text []byte) int { return len(text) }); len(rest) > 0 {
		emit(rest)
	}
	m.held = nil
}

// hide emits the text with stars in place of secrets, up to where it is uncertain, and returns the rest.
func (m *Masker) hide(text []byte, emit func([]byte), uncertain func([]byte) int) (rest []byte) {
	for {
		until := uncertain(text)
		at, length := m.first(text)
		if at < 0 || at >= until {
			if until > 0 {
				emit(text[:until])
			}
			return text[until:]
		}
		if at > 0 {
			emit(text[:at])
		}
		emit([]byte(stars))
		text = text[at+length:]
	}
}

// first is the first secret in the text, and of those that begin there the longest; -1 is none.
func (m *Masker) first(text []byte) (at, length int) {
	at = -1
	for _, s := range m.secrets {
		within := text
		if at >= 0 { // only what begins earlier counts
			within = text[:min(len(text), at+len(s)-1)]
		}
		if i := bytes.Index(within, s); i >= 0 {
			at, length = i, len(s)
		}
	}
	return at, length
}

// uncertain is where the first end of the text begins that may be the beginning of a secret.
func (m *Masker) uncertain(text []byte) int {
	until := len(text)
	for _, s := range m.secrets {
		for n := min(len(s)-1, len(text)); n > len(text)-until; n-- {
			if bytes.HasSuffix(text, s[:n]) {
				until = len(text) - n
				break
			}
		}
	}
	return until
}
