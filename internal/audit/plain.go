package audit

import (
	"go.uber.org/zap/zapcore"

	"github.com/cronlatch/cronlatch/internal/output"
)

// plain keeps text from users from acting on whoever reads the lines: zap escapes C0 controls in its JSON, but leaves
// DEL, C1 controls (U+009B starts a terminal sequence), format characters and U+2028 as they are.
type plain struct{ zapcore.WriteSyncer }

// Write reports the length that it was given: what the escapes add is nobody's business above.
func (p plain) Write(line []byte) (int, error) {
	if _, err := p.WriteSyncer.Write(output.EscapeJSON(line)); err != nil {
		return 0, err
	}
	return len(line), nil
}
