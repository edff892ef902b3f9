package tracing

import "time"

// SetClosing gives Close another time than a second, for a test in which all that was queued must arrive.
func (t *Tracer) SetClosing(d time.Duration) { t.closing = d }

// SendTimeout is how long a collector may take for its answer.
const SendTimeout = sendTimeout
