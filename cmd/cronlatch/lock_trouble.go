package main

import (
	"fmt"
	"slices"
	"sync"

	"go.uber.org/zap/zapcore"
)

// lockTrouble tells a person why a lock is not renewed: what the keeper logs, once for each outage.
type lockTrouble struct {
	zapcore.LevelEnabler

	say func(format string, args ...any)

	mu   sync.Mutex
	last string // why the renewals fail; "" when they do not
}

func newLockTrouble(say func(format string, args ...any)) *lockTrouble {
	return &lockTrouble{LevelEnabler: zapcore.WarnLevel, say: say}
}

// With is part of zapcore.Core; the keeper's own fields say nothing more.
func (t *lockTrouble) With([]zapcore.Field) zapcore.Core { return t }

// Check is part of zapcore.Core.
func (t *lockTrouble) Check(e zapcore.Entry, ce *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if t.Enabled(e.Level) {
		return ce.AddCore(e, t)
	}
	return ce
}

// Write says it.
func (t *lockTrouble) Write(e zapcore.Entry, fields []zapcore.Field) error {
	text := e.Message
	if i := slices.IndexFunc(fields, func(f zapcore.Field) bool { return f.Type == zapcore.ErrorType }); i >= 0 {
		text = fmt.Sprintf("%s: %v", text, fields[i].Interface)
	}
	t.mu.Lock()
	first := t.last == ""
	t.last = text
	t.mu.Unlock()
	if first {
		t.say("%s", text)
	}
	return nil
}

// Sync is part of zapcore.Core.
func (*lockTrouble) Sync() error { return nil }

// over hears that a renewal was confirmed.
func (t *lockTrouble) over() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = ""
}
