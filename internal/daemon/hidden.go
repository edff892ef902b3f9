package daemon

import (
	"github.com/cronlatch/cronlatch/internal/mask"
	"github.com/cronlatch/cronlatch/jobs"
)

// hidden are the texts that a job's output does not show: its secrets, as they are and as they are often encoded.
func hidden(j *jobs.Job) [][]byte {
	var secrets []string
	for _, s := range j.Secrets {
		secrets = append(secrets, s.Reveal())
	}
	return mask.Forms(secrets)
}
