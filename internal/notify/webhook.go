package notify

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/scheduler"
)

// The headers of a webhook.
const (
	HeaderID        = "Cronlatch-Id"
	HeaderSignature = "Cronlatch-Signature"
)

const allowPrivateHint = "allow_private: true of the channel allows it"

// webhookBody is what a webhook gets.
type webhookBody struct {
	ID     string              `json:"id"`
	Events []scheduler.Message `json:"events"`
}

func sendWebhook(ctx context.Context, ch *jobs.WebhookChannel, messages []scheduler.Message) error {
	id := idOf(messages)
	body, err := json.Marshal(webhookBody{id, messages})
	if err != nil {
		return fmt.Errorf("encoding the messages: %w", err)
	}
	header := map[string]string{"Content-Type": "application/json", HeaderID: id}
	if ch.Secret != "" {
		header[HeaderSignature] = Sign([]byte(ch.Secret.Reveal()), time.Now(), body)
	}
	r := outgoing{method: http.MethodPost, url: ch.URL, allowPrivate: ch.AllowPrivate, hint: allowPrivateHint, header: header, body: body}
	return r.exchange(ctx)
}

// Sign is the signature of a body that is sent at an instant: t=<seconds since 1970>,v1=<hex of the HMAC-SHA256 of "t.body">.
func Sign(secret []byte, at time.Time, body []byte) string {
	t := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, secret)
	_, _ = mac.Write([]byte(t + "."))
	_, _ = mac.Write(body)
	return "t=" + t + ",v1=" + hex.EncodeToString(mac.Sum(nil))
}
