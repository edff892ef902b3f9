// Package audit writes the record of decisions: who held what, when, and why something ran, did not run, or was lost.
//
// A line is one decision. Its message is constant for each action; everything variable is a typed field from the
// closed list in fields.go, so that text given by a user can never shape a line. Times are RFC 3339 in UTC with
// nanoseconds. Nothing is sampled: zap's production preset drops lines under load and prints epoch floats, and would
// lose exactly the lines that an investigation needs.
//
// The package guarantees the form of the lines, not their delivery: a full disk loses lines, and the daemon goes on.
// What a person does and everything exceptional is in the database's audit_log as well.
//
// Tests use zaptest/observer on the same fields.
package audit

import (
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// LoggerName is the value of the "logger" key of every audit line; it tells audit lines from the daemon's own log
// when both go to one stream.
const LoggerName = "audit"

// New returns the audit logger writing JSON lines to w.
func New(w zapcore.WriteSyncer) *zap.Logger {
	return zap.New(zapcore.NewCore(zapcore.NewJSONEncoder(encoding()), zapcore.Lock(plain{w}), zapcore.InfoLevel)).Named(LoggerName)
}

func encoding() zapcore.EncoderConfig {
	return zapcore.EncoderConfig{
		TimeKey:        "ts",
		LevelKey:       "level",
		NameKey:        "logger",
		MessageKey:     "msg",
		LineEnding:     zapcore.DefaultLineEnding,
		EncodeLevel:    zapcore.LowercaseLevelEncoder,
		EncodeTime:     func(t time.Time, enc zapcore.PrimitiveArrayEncoder) { enc.AppendString(FormatTime(t)) },
		EncodeDuration: zapcore.StringDurationEncoder,
		EncodeName:     zapcore.FullNameEncoder,
	}
}

// FormatTime is the one form of an instant in the audit: RFC 3339 in UTC with all nine digits.
func FormatTime(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000000Z") }

// Log writes one decision. The message is derived from the action and therefore constant.
func Log(l *zap.Logger, a Action, o Outcome, fields ...zap.Field) {
	level := zapcore.InfoLevel
	if o != Success {
		level = zapcore.WarnLevel
	}
	if ce := l.Check(level, a.message()); ce != nil {
		ce.Write(append([]zap.Field{zap.String(keyAction, string(a)), zap.String(keyOutcome, string(o))}, fields...)...)
	}
}
