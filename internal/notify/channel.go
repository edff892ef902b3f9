package notify

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/scheduler"
)

// tryTimeout is what one try may take, from the look-up of the name to the end of the answer.
const tryTimeout = 10 * time.Second

// EventTest is the event of a message that somebody asked for to see whether a channel works.
const EventTest jobs.Event = "test"

// courier sends. The zero value is ready for use.
type courier struct {
	roots *x509.CertPool // that sign mail servers' certificates; nil is the system's
}

// send tries once to send messages to a channel, all as one. The error is safe to be shown.
func (c courier) send(ctx context.Context, ch *jobs.Channel, messages []scheduler.Message) error {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	switch {
	case ch.Webhook != nil:
		return sendWebhook(ctx, ch.Webhook, messages)
	case ch.Slack != nil:
		return sendSlack(ctx, ch.Slack, messages)
	case ch.Email != nil:
		return c.email(ctx, ch.Email, messages, time.Now())
	default:
		return errors.New("the channel has neither webhook nor slack nor email")
	}
}

// UnknownError is a channel that the configuration does not have.
type UnknownError struct {
	Name  string
	Known []string // sorted
}

func (e *UnknownError) Error() string {
	if len(e.Known) == 0 {
		return fmt.Sprintf("there is no channel %q: the configuration has none", e.Name)
	}
	return fmt.Sprintf("there is no channel %q; the configuration has %s", e.Name, strings.Join(e.Known, ", "))
}

// Test sends a message to a channel now, past the outbox. The error is an *UnknownError, or safe to be shown as it is.
func Test(ctx context.Context, channels map[string]jobs.Channel, name, replica, by string) error {
	ch, known := channels[name]
	if !known {
		return &UnknownError{name, slices.Sorted(maps.Keys(channels))}
	}
	return courier{}.send(ctx, &ch, []scheduler.Message{{
		ID: scheduler.NewMessageID(), Event: EventTest, Replica: replica,
		Text: fmt.Sprintf("this is a test of the channel %s, asked for by %s", name, by),
	}})
}

// idOf is the id of several messages together; that of a single one is its own.
func idOf(messages []scheduler.Message) string {
	if len(messages) == 1 {
		return messages[0].ID
	}
	h := sha256.New()
	for i := range messages {
		_, _ = h.Write([]byte(messages[i].ID + "\n"))
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// maxLines is how many events a text lists; a webhook gets all.
const maxLines = 50

// lines are the events as people read them, "and 12 more" included.
func lines(messages []scheduler.Message) []string {
	var list []string
	for i := range messages[:min(len(messages), maxLines)] {
		list = append(list, fmt.Sprintf("[%s] %s", messages[i].Event, messages[i].Text))
	}
	if n := len(messages) - maxLines; n > 0 {
		list = append(list, fmt.Sprintf("and %d more", n))
	}
	return list
}
