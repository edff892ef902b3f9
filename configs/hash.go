package configs

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/cronlatch/cronlatch/jobs"
)

// definition is the canonical form of a job: everything that decides what runs when, and nothing about how it was
// written. Fields may be added, which changes every hash once; a hash is compared between replicas, never stored.
type definition struct {
	Name, Description string
	Tags              []string
	Schedule          string // its hash covers text, zone, dst, seconds and zone data
	Resource, Offset  string
	Zone              string
	Command           []string
	Run               string
	Env               map[string]string
	Durations         [3]int64
	Overlap           jobs.Overlap
	CatchUp           jobs.CatchUp
	OnLost            jobs.OnLost
	Enabled           bool
}

func (d *jobDraft) definition(job *jobs.Job) definition {
	out := definition{
		Name: job.Name, Description: job.Description, Tags: job.Tags,
		Resource: job.Resource.String(), Offset: d.resourceOffset, Zone: d.timezone,
		Command: job.Command, Run: job.Run, Env: job.Env,
		Durations: [3]int64{int64(job.Timeout), int64(job.KillAfter), int64(job.StartDeadline)},
		Overlap:   job.Overlap, CatchUp: job.CatchUp, OnLost: job.OnLost, Enabled: job.Enabled,
	}
	if job.Schedule != nil {
		out.Schedule = job.Schedule.Hash()
	}
	return out
}

// hash is SHA-256 over the definitions, which are sorted by name, and the release of the zone data: another release can mean other instants.
func hash(zones string, definitions []definition) string {
	h := sha256.New()
	enc := json.NewEncoder(h)
	// Neither call can fail: a hash takes every byte, and definitions hold only what JSON can write.
	_ = enc.Encode(zones)
	_ = enc.Encode(definitions)
	return hex.EncodeToString(h.Sum(nil))
}
