package demo

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cronlatch/cronlatch/internal/audit"
	"github.com/cronlatch/cronlatch/jobs"
)

// line is what the demo reads of a line of the audit.
type line struct {
	At       time.Time    `json:"ts"`
	Action   audit.Action `json:"event.action"`
	Job      string       `json:"job"`
	Run      int64        `json:"run.id"`
	Attempt  int          `json:"attempt"`
	Resource string       `json:"resource"`
	Token    int64        `json:"fencing_token"`
	Replica  string       `json:"replica"`
	Outcome  string       `json:"run.outcome"`
	Reason   string       `json:"reason"`
}

// grant is who holds a resource, or held it last.
type grant struct {
	replica, job string
	token, run   int64
	since        time.Time
	over         bool
	lost         bool   // it expired: whoever claims it next takes it over
	before       *grant // that of a lower token, of whose end nobody has told yet
}

// story turns the audit of all replicas into sentences. Their lines come through one pipe for each replica, so they may
// overtake each other a little.
type story struct {
	grants map[string]grant
	say    func(format string, args ...any)
}

func newStory(say func(string, ...any)) *story { return &story{map[string]grant{}, say} }

// tell says what a line means, and nothing for most lines.
func (s *story) tell(text []byte) (l line, ok bool) {
	if json.Unmarshal(text, &l) != nil {
		return l, false
	}
	switch l.Action {
	case audit.RunClaim:
		s.claimed(&l)
	case audit.RunLose:
		s.lost(&l)
	case audit.RunFinish:
		s.finished(&l)
	case audit.RunSkip, audit.RunMiss:
		s.say("run %d of %s was %s: %s", l.Run, l.Job, l.Outcome, meaning(l.Reason))
	case audit.RunRetry:
		s.say("run %d is attempt %d of %s", l.Run, l.Attempt, l.Job)
	case audit.ConfigReject:
		s.say("a replica rejected the changed configuration and goes on with the old one; its log says why")
	default:
	}
	return l, true
}

func (s *story) claimed(l *line) {
	before, known := s.grants[l.Resource]
	if known && before.token >= l.Token {
		return // this line was overtaken by that of a later grant
	}
	now := grant{replica: l.Replica, job: l.Job, token: l.Token, run: l.Run, since: l.At}
	if known && !before.over {
		before.before = nil
		now.before = &before
	}
	s.grants[l.Resource] = now
	if known && before.lost {
		s.takeover(&now, before.replica, before.token)
		return
	}
	s.say("replica %s claimed %s as run %d, with token %d on the lock %s", l.Replica, l.Job, l.Run, l.Token, l.Resource)
}

func (s *story) takeover(now *grant, from string, token int64) {
	s.say("TAKEOVER: replica %s claimed %s as run %d and took over its lock from replica %s: the fencing token grew from %d to %d",
		now.replica, now.job, now.run, from, token, now.token)
}

func (s *story) finished(l *line) {
	s.over(l)
	text := "run %d of %s %s on replica %s, and the lock is free"
	if l.Reason != "" {
		text += " (" + meaning(l.Reason) + ")"
	}
	s.say(text, l.Run, l.Job, strings.ReplaceAll(l.Outcome, "_", " "), l.Replica)
}

func (s *story) lost(l *line) {
	if now := s.grants[l.Resource]; now.token > l.Token {
		s.lostBefore(&now, l)
		return
	}
	g := s.grants[l.Resource]
	if g.run != l.Run { // the line of its claim was the last thing that its replica did not say any more
		g = grant{replica: "that was killed", job: l.Job, run: l.Run, token: l.Token, since: l.At}
	}
	g.over, g.lost = true, true
	s.grants[l.Resource] = g
	s.sayLost(l)
}

// lostBefore hears of a loss when the next claim was told of already: that was a takeover.
func (s *story) lostBefore(now *grant, l *line) {
	s.sayLost(l)
	if before := now.before; before != nil && before.token == l.Token {
		s.takeover(now, before.replica, before.token)
	}
}

func (s *story) sayLost(l *line) {
	if l.Reason != string(jobs.ReasonReplicaLost) {
		s.say("run %d of %s was lost on replica %s: %s", l.Run, l.Job, l.Replica, meaning(l.Reason))
		return
	}
	s.say("replica %s found the lock %s expired, so run %d is lost: its command was stopped before that", l.Replica, l.Resource, l.Run)
}

func (s *story) over(l *line) {
	if g := s.grants[l.Resource]; g.token == l.Token {
		g.over = true
		s.grants[l.Resource] = g
	}
}

// held are the resources that a replica holds, the one that it has held for the longest time first.
func (s *story) held(replica string) (resources []string) {
	for resource, g := range s.grants {
		if !g.over && g.replica == replica {
			resources = append(resources, resource)
		}
	}
	slices.SortFunc(resources, func(a, b string) int {
		return cmp.Or(s.grants[a].since.Compare(s.grants[b].since), strings.Compare(a, b))
	})
	return resources
}

// holder is the replica that has held a lock for the longest time; "" when there is none.
func (s *story) holder(alive func(string) bool) (name string) {
	var since time.Time
	for _, g := range s.grants {
		if !g.over && alive(g.replica) && (name == "" || g.since.Before(since)) {
			name, since = g.replica, g.since
		}
	}
	return name
}

// left is what becomes of the locks of a replica that was killed.
func (s *story) left(replica string) {
	held := s.held(replica)
	if len(held) == 0 {
		s.say("replica %s is dead; it held no lock, so there is nothing to take over", replica)
		return
	}
	parts := make([]string, len(held))
	for i, resource := range held {
		parts[i] = fmt.Sprintf("%s (token %d)", resource, s.grants[resource].token)
	}
	s.say("replica %s is dead, and cannot renew %s any more: others may take over when that expires, at most %s from now",
		replica, strings.Join(parts, ", "), lockTTL)
}

// meaning spells out the reasons that a demo has.
func meaning(reason string) string {
	switch jobs.Reason(reason) {
	case jobs.ReasonOverlap:
		return "an earlier run is unfinished"
	case jobs.ReasonExit:
		return "its exit code says so"
	case jobs.ReasonDrain:
		return "the replica was asked to leave"
	case jobs.ReasonLeaseLost:
		return "its lock could not be renewed in time"
	case jobs.ReasonRequested:
		return "somebody asked for it"
	default:
		return strings.ReplaceAll(reason, "_", " ")
	}
}
