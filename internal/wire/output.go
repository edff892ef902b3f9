package wire

// Output is a piece of what a run has printed, without a gap in it.
type Output struct {
	RunID int64 `json:"run_id"`
	// Offset is the byte that was asked for. MissingBytes are those from there on that are not kept; Data follows them.
	Offset       int64 `json:"offset"`
	MissingBytes int64 `json:"missing_bytes"`
	// Data is base64 in JSON, because a job may print any bytes.
	Data []byte `json:"data"` // never null
	// NextOffset is where the next piece begins, and TotalBytes how much was printed, as far as it is known here.
	NextOffset int64  `json:"next_offset"`
	TotalBytes int64  `json:"total_bytes"`
	State      string `json:"state"` // of the run
	Ended      bool   `json:"ended"` // nothing is added any more
	// NextRunID is the run that is the next attempt, once this one has ended and when there is one.
	NextRunID *int64 `json:"next_run_id"`
}
