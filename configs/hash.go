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
	Schedule          string // its hash covers everything that decides the instants, dates of calendars and zone data included
	Resource, Offset  string
	Zone              string
	Command           []string
	Run               string
	HTTP              *request
	SQL               *statements
	Env               map[string]string
	Durations         [3]int64
	Jitter            int64 `json:",omitzero"`
	Overlap           jobs.Overlap
	CatchUp           jobs.CatchUp
	OnLost            jobs.OnLost
	Retry             jobs.Retry
	ExitCodes         jobs.ExitCodes
	OncePer           jobs.OncePer
	Limits            map[string]int
	OnlyOn            jobs.Labels `json:",omitempty"`
	Enabled           bool
	MaxAge            int64             `json:",omitzero"`
	After             []jobs.After      `json:",omitempty"` // hooks are definitions of their own
	Params            []paramDefinition `json:",omitempty"`
	Secrets           []string          `json:",omitempty"` // names and fingerprints
	User              string            `json:",omitempty"`
	AllowRoot         bool              `json:",omitempty"`
	Notify            jobs.Notify       `json:",omitempty"`
	Ping              string            `json:",omitempty"` // its fingerprint
	PingAllowPrivate  bool              `json:",omitempty"`
	LateAfter         int64             `json:",omitzero"`
	History           jobs.History      `json:",omitzero"`
}

func (d *jobDraft) definition(job *jobs.Job, prints fingerprints) definition {
	out := definition{
		Name: job.Name, Description: job.Description, Tags: job.Tags,
		Resource: job.Resource.String(), Offset: d.resourceOffset, Zone: d.when.timezone,
		Command: job.Command, Run: job.Run, HTTP: requestOf(job.HTTP), SQL: statementsOf(job.SQL), Env: job.Env,
		Durations: [3]int64{int64(job.Timeout), int64(job.KillAfter), int64(job.StartDeadline)},
		Jitter:    int64(job.Jitter),
		Overlap:   job.Overlap, CatchUp: job.CatchUp, OnLost: job.OnLost, Enabled: job.Enabled,
		Retry: job.Retry, ExitCodes: job.ExitCodes, OncePer: job.OncePer, Limits: job.Limits, OnlyOn: job.OnlyOn,
		MaxAge: int64(job.MaxAge), After: job.After,
		Params: paramDefinitions(job.Params), Secrets: prints.ofAll(job.Secrets), User: job.User, AllowRoot: job.AllowRoot,
		Notify: job.Notify, Ping: prints.of(job.Ping), PingAllowPrivate: job.PingAllowPrivate, LateAfter: int64(job.LateAfter), History: job.History,
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

// eachHash is a hash for each definition alone, by the job's name.
func eachHash(definitions []definition) map[string]string {
	each := make(map[string]string, len(definitions))
	for i := range definitions {
		each[definitions[i].Name] = hash("", definitions[i:i+1])
	}
	return each
}
