package main

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/cronlatch/cronlatch/locking"
)

// holderMetadata is what `cronlatch lock` and the daemon write about a holder.
type holderMetadata struct {
	Command string `json:"command"`
	Host    string `json:"host"`
	PID     int64  `json:"pid"`
	User    string `json:"user"`

	Job     string `json:"job"` // the daemon's
	RunID   int64  `json:"run_id"`
	Replica string `json:"replica"`
}

// maxHolderText bounds what is shown of metadata that somebody else chose.
const maxHolderText = 200

// holderName is who holds a lock, in the words of its metadata.
func holderName(r *locking.Record) string {
	var m holderMetadata
	if json.Unmarshal(r.Metadata, &m) == nil {
		switch {
		case m.Command != "":
			return m.command()
		case m.Job != "" && m.Replica != "":
			return "run " + formatToken(m.RunID) + " of the job " + cut(m.Job, maxHolderText) + " on replica " + cut(m.Replica, maxHolderText)
		}
	}
	if text := string(r.Metadata); text != "" && text != "{}" {
		return cut(text, maxHolderText)
	}
	if r.Owner != "" {
		return "the owner " + cut(r.Owner, maxHolderText)
	}
	return "somebody who left no name"
}

// command is "deploy.sh (pid 17) of ci@build3".
func (m *holderMetadata) command() string {
	text := cut(m.Command, maxHolderText)
	if m.PID != 0 {
		text += " (pid " + formatToken(m.PID) + ")"
	}
	switch {
	case m.User != "" && m.Host != "":
		text += " of " + cut(m.User+"@"+m.Host, maxHolderText)
	case m.Host != "":
		text += " on " + cut(m.Host, maxHolderText)
	}
	return text
}

func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "..."
}

// word is a name as it is typed: in quotes when a shell would read something else.
func word(name string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:@%+=,", r)
	}
	if name != "" && name[0] != '-' && !strings.ContainsFunc(name, func(r rune) bool { return !plain(r) }) {
		return name
	}
	return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
}

func formatToken(n int64) string { return strconv.FormatInt(n, 10) }
