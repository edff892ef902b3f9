package audit

import "go.uber.org/zap/zapcore"

// actor writes actor.type and actor.id beside the other fields of the line.
type actor struct {
	kind ActorType
	id   string
}

func (a actor) MarshalLogObject(enc zapcore.ObjectEncoder) error {
	enc.AddString("actor.type", string(a.kind))
	enc.AddString("actor.id", a.id)
	return nil
}
