package main

import (
	"io"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/cronlatch/cronlatch/configs"
	"github.com/cronlatch/cronlatch/internal/output"
)

// logger is the daemon's own log, on stderr; the audit is apart.
func (a *app) logger(c configs.Log) (*zap.Logger, error) {
	level, err := zapcore.ParseLevel(c.Level)
	if err != nil {
		return nil, fail(exitConfig, "log.level: %w", err)
	}
	encoding := zapcore.EncoderConfig{
		TimeKey: "ts", LevelKey: "level", NameKey: "logger", MessageKey: "msg", StacktraceKey: "stack",
		LineEnding: zapcore.DefaultLineEnding, EncodeLevel: zapcore.LowercaseLevelEncoder,
		EncodeDuration: zapcore.StringDurationEncoder, EncodeName: zapcore.FullNameEncoder,
		EncodeTime: zapcore.TimeEncoderOfLayout("2006-01-02T15:04:05.000Z07:00"),
	}
	encoder := zapcore.NewJSONEncoder(encoding)
	if c.Format == configs.LogConsole || c.Format == configs.LogAuto && output.IsTerminal(a.Stderr) {
		encoder = zapcore.NewConsoleEncoder(encoding)
	}
	return zap.New(zapcore.NewCore(encoder, zapcore.Lock(zapSink(a.Stderr)), level)), nil
}

// zapSink is a stream that need not be flushed: syncing a terminal or a pipe is an error, and nothing is buffered.
func zapSink(w io.Writer) zapcore.WriteSyncer {
	return zapcore.AddSync(struct{ io.Writer }{w})
}
