package jobs

import "time"

// Event is something that a channel may hear of.
type Event string

// The events.
const (
	EventFailure  Event = "failure"  // the last attempt failed or timed out
	EventRecovery Event = "recovery" // the first success after a failure, a lost or a missed run
	EventMissed   Event = "missed"   // an occurrence did not run, and not because of overlap or a limit of its own
	EventLost     Event = "lost"     // a replica was lost in the middle of the last attempt, or a person must decide
	EventLate     Event = "late"     // a run began later than late_after, or still waits
	EventOverdue  Event = "overdue"  // no success within max_age
)

// Notify are the names of the channels that hear of a job's events, by event; nil is nobody.
type Notify map[Event][]string

// Listened reports whether somebody wants to hear how the job's runs end.
func (j *Job) Listened() bool { return len(j.Notify) > 0 || j.Ping != "" }

// Channel is where messages go. Exactly one of Webhook, Slack and Email is set.
type Channel struct {
	Name    string
	Webhook *WebhookChannel
	Slack   *SlackChannel
	Email   *EmailChannel
}

// WebhookChannel is a POST of a JSON document, signed when there is a secret.
type WebhookChannel struct {
	URL          Secret // it may hold a token
	Secret       Secret // key of the signature; "" is no signature
	AllowPrivate bool   // the address may be a private or a loopback one
}

// SlackChannel is an incoming webhook as Slack, Mattermost and others have it.
type SlackChannel struct {
	URL          Secret
	AllowPrivate bool
}

// EmailChannel is a mail server and who gets the mail.
type EmailChannel struct {
	Server   string // host:port
	TLS      string // starttls, tls or none
	Username string
	Password Secret
	From     string
	To       []string
}

// History is how many runs are kept, and for how long. The newest Keep of a job are kept however old; a run that is younger
// than KeepFor is kept however many there are. 0 is what the configuration says for all.
type History struct {
	Keep    int
	KeepFor time.Duration
}
