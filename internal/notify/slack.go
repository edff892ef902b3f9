package notify

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/cronlatch/cronlatch/internal/output"
	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/scheduler"
)

// slackBytes is less than what Slack takes as one text.
const slackBytes = 30_000

func sendSlack(ctx context.Context, ch *jobs.SlackChannel, messages []scheduler.Message) error {
	body, err := json.Marshal(map[string]string{"text": slackText(messages)})
	if err != nil {
		return fmt.Errorf("encoding the messages: %w", err)
	}
	r := outgoing{
		method: http.MethodPost, url: ch.URL, allowPrivate: ch.AllowPrivate, hint: allowPrivateHint, body: body,
		header: map[string]string{"Content-Type": "application/json", HeaderID: idOf(messages)},
	}
	return r.exchange(ctx)
}

// slackText is the events, a line for each. What comes from names stays text: it makes no mention, no link and no format.
func slackText(messages []scheduler.Message) string {
	list := lines(messages)
	for i, line := range list {
		list[i] = slackEscape(line)
	}
	text := strings.Join(list, "\n")
	if len(text) > slackBytes {
		text = strings.ToValidUTF8(text[:slackBytes], "") + " ..."
	}
	return text
}

// slackEscape is Slack's own escaping. A zero-width space keeps what is left from being a format, or a mention where @channel
// works without brackets (Mattermost).
func slackEscape(s string) string {
	s = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(output.Clean(s))
	return strings.NewReplacer(
		"@", "@\u200b", "*", "*\u200b", "~", "~\u200b", "`", "`\u200b", "](", "]\u200b(",
		"://", ":\u200b//", "www.", "www\u200b.").Replace(s)
}
