package configs

import (
	"maps"
	"net"
	"net/mail"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cronlatch/cronlatch/jobs"
)

const (
	notifyShape  = "{on_failure: [ops]}"
	channelShape = `{slack: {url: "${file:/run/secrets/slack}"}}`
)

// hearFields are the keys of a job that say who hears of its runs.
func hearFields() []field[jobDraft] {
	return []field[jobDraft]{
		{
			key: "notify", shared: true, doc: "Which channels hear of what: lists of names in `channels`. Each event of `defaults` can be set anew; `[]` is nobody.",
			bind: func(d *jobDraft) sink { return group[notifyDraft]{notifyFields(), &d.hear.notify, notifyShape} },
		},
		{
			key: "late_after", shared: true, doc: "How long after its instant a run may begin before it is late: `notify.on_late`, and a metric.",
			bind: func(d *jobDraft) sink { return duration{into: &d.hear.lateAfter, min: time.Second} },
		},
		{
			key: "ping", doc: "An address that hears of each start and end of a run: a POST to it with `/start`, as it is after a success, and with `/fail`. It is not shown anywhere.",
			bind: func(d *jobDraft) sink {
				return secretText{into: &d.hear.ping, check: checkHTTPURL, like: httpURLPattern}
			},
		},
		{
			key: "ping_allow_private", initial: "false", shared: true, doc: "true: the address of `ping` may be a private one or one of this host.",
			bind: func(d *jobDraft) sink { return boolean{&d.hear.pingPrivate} },
		},
	}
}

// hearDraft is the part of a jobDraft that says who hears of the job's runs.
type hearDraft struct {
	notify    notifyDraft
	lateAfter time.Duration
	ping      jobs.Secret

	pingPrivate bool // the address of ping may be a private one
}

// events are the keys of notify, in the order of its page.
//
//nolint:gochecknoglobals // a closed list
var events = []struct {
	event jobs.Event
	doc   string
}{
	{jobs.EventFailure, "The last attempt failed or timed out."},
	{jobs.EventRecovery, "The first success after a failure, a lost or a missed run."},
	{jobs.EventMissed, "An occurrence did not run, and not because of `overlap` or a limit of its own."},
	{jobs.EventLost, "A replica was lost in the middle of the last attempt, or a person must decide."},
	{jobs.EventLate, "A run began later than `late_after`, or still waits."},
	{jobs.EventOverdue, "No success within `max_age`."},
}

// notifyDraft is the lists of notify, in the order of events.
type notifyDraft [6][]string

func notifyFields() []field[notifyDraft] {
	fields := make([]field[notifyDraft], len(events))
	for i, e := range events {
		fields[i] = field[notifyDraft]{
			key: "on_" + string(e.event), doc: e.doc,
			bind: func(d *notifyDraft) sink { return channelNames{&d[i]} },
		}
	}
	return fields
}

// channelNames is a sink for a list of channels, which may be empty.
type channelNames struct{ into *[]string }

func (channelNames) empty() string { return "[]" }

func (s channelNames) read(r *reader, n *node, name string) {
	*s.into = nil
	if n.kind == kindList && len(n.items) == 0 {
		return
	}
	var names []string
	var nodes []*node
	list{into: &names, nodes: &nodes}.read(r, n, name)
	known := slices.Sorted(maps.Keys(r.channels))
	for i, channel := range names {
		switch {
		case channel == "": // reported with the list
		case r.channels == nil:
			r.refuse(nodes[i], codeChannel, "there is no channel %s: the configuration has no channels; write for example channels: {%s: %s} at its top",
				shown(nodes[i]), exampleName(channel), channelShape)
		case !slices.Contains(known, channel):
			r.refuse(nodes[i], codeChannel, "there is no channel %s; channels has %s%s", shown(nodes[i]), series(known, "and"), didYouMean(channel, known))
		case slices.Contains(names[:i], channel):
			r.refuse(nodes[i], codeConflict, "%s has %s twice; remove one of them", name, shown(nodes[i]))
		}
	}
	*s.into = names
}

func exampleName(name string) string {
	if databaseName.MatchString(name) {
		return name
	}
	return "ops"
}

// hear completes the job with who hears of it. What never happens is heard by nobody, which nobody would notice.
func (r *reader) hear(d *jobDraft, job *jobs.Job) {
	for i, e := range events {
		if names := d.hear.notify[i]; len(names) > 0 {
			if job.Notify == nil {
				job.Notify = jobs.Notify{}
			}
			job.Notify[e.event] = slices.Sorted(slices.Values(names))
		}
	}
	job.LateAfter, job.Ping, job.PingAllowPrivate = d.hear.lateAfter, d.hear.ping, d.hear.pingPrivate
	own := d.at["notify"]
	if own == nil || own.kind != kindMap {
		return
	}
	for event, key := range map[jobs.Event]string{jobs.EventLate: "late_after", jobs.EventOverdue: "max_age"} {
		set := job.LateAfter
		if event == jobs.EventOverdue {
			set = d.chain.maxAge
		}
		n := within(own, "on_"+string(event))
		if n != own && job.Notify[event] != nil && set == 0 && !d.at.has(key) {
			r.refuse(n, codeConflict, "%s has notify.on_%s and no %s, so that it never happens; add %s", d.title(), event, key, key)
		}
	}
}

func channelsFields() []field[daemonDraft] {
	return []field[daemonDraft]{{
		key: "channels", doc: "Where messages about runs go, by the name that `notify` uses: `" + channelsShape + "`.",
		bind: func(d *daemonDraft) sink { return channelMap{&d.Channels} },
	}}
}

const channelsShape = "{ops: " + channelShape + "}"

// channelDraft is a channel as it is read.
type channelDraft struct {
	webhook jobs.WebhookChannel
	slack   jobs.SlackChannel
	email   jobs.EmailChannel
}

//nolint:gochecknoglobals // a closed list
var channelKinds = []string{"webhook", "slack", "email"}

func channelFields() []field[channelDraft] {
	return []field[channelDraft]{
		{
			key: "webhook", doc: "A POST of a JSON document.",
			bind: func(d *channelDraft) sink {
				return group[jobs.WebhookChannel]{webhookFields(), &d.webhook, `{url: "https://example.com/hook"}`}
			},
		},
		{
			key: "slack", doc: "An incoming webhook of Slack, Mattermost or another one of that form.",
			bind: func(d *channelDraft) sink {
				return group[jobs.SlackChannel]{slackFields(), &d.slack, `{url: "${file:/run/secrets/slack}"}`}
			},
		},
		{
			key: "email", doc: "Mail, through a server.",
			bind: func(d *channelDraft) sink {
				return checked[jobs.EmailChannel]{group[jobs.EmailChannel]{
					emailFields(), &d.email, `{server: "mail.example.com:587", from: cron@example.com, to: [ops@example.com]}`,
				}, checkEmail}
			},
		},
	}
}

const docPrivate = "true: the address may be a private or a loopback one."

func webhookFields() []field[jobs.WebhookChannel] {
	return []field[jobs.WebhookChannel]{
		{
			key: "url", required: true, doc: "Where the request goes. It is not shown anywhere: it may hold a token.",
			bind: func(c *jobs.WebhookChannel) sink {
				return secretText{into: &c.URL, check: checkHTTPURL, like: httpURLPattern}
			},
		},
		{
			key: "secret", doc: "The key by which the request is signed; without it, it is not.",
			bind: func(c *jobs.WebhookChannel) sink { return secretText{into: &c.Secret} },
		},
		{
			key: "allow_private", initial: "false", doc: docPrivate,
			bind: func(c *jobs.WebhookChannel) sink { return boolean{&c.AllowPrivate} },
		},
	}
}

func slackFields() []field[jobs.SlackChannel] {
	return []field[jobs.SlackChannel]{
		{
			key: "url", required: true, doc: "The address of the incoming webhook. It is not shown anywhere.",
			bind: func(c *jobs.SlackChannel) sink {
				return secretText{into: &c.URL, check: checkHTTPURL, like: httpURLPattern}
			},
		},
		{
			key: "allow_private", initial: "false", doc: docPrivate,
			bind: func(c *jobs.SlackChannel) sink { return boolean{&c.AllowPrivate} },
		},
	}
}

func emailFields() []field[jobs.EmailChannel] {
	return []field[jobs.EmailChannel]{
		{
			key: "server", required: true, doc: "host:port of the mail server.",
			bind: func(c *jobs.EmailChannel) sink { return text{into: &c.Server, check: checkMailServer} },
		},
		{
			key: "tls", initial: "starttls", doc: "starttls (mostly port 587), tls from the beginning (465), or none.",
			bind: func(c *jobs.EmailChannel) sink {
				return choice[string]{into: &c.TLS, words: []string{"starttls", "tls", "none"}}
			},
		},
		{
			key: "username", doc: "Who logs in; without it, nobody does.",
			bind: func(c *jobs.EmailChannel) sink { return text{into: &c.Username} },
		},
		{
			key: "password", doc: "The password of username.",
			bind: func(c *jobs.EmailChannel) sink { return secretText{into: &c.Password} },
		},
		{
			key: "from", required: true, doc: "The address of the sender.",
			bind: func(c *jobs.EmailChannel) sink { return text{into: &c.From, check: checkMailAddress} },
		},
		{
			key: "to", required: true, doc: "The addresses that the mail goes to.",
			bind: func(c *jobs.EmailChannel) sink { return mailList{&c.To} },
		},
	}
}

func checkMailServer(server string) error {
	host, port, err := net.SplitHostPort(server)
	number, numberErr := strconv.Atoi(port)
	if err != nil || !isHost(host) || numberErr != nil || number < 1 || number > 65535 {
		return &partError{code: codeHost, message: "the mail server must be host:port, such as mail.example.com:587"}
	}
	return nil
}

func checkMailAddress(address string) error {
	if _, err := mail.ParseAddress(address); err != nil || strings.ContainsAny(address, "\r\n") {
		return &partError{code: codeHost, message: strconv.Quote(abbreviate(address)) + " is not an address of mail, such as ops@example.com"}
	}
	return nil
}

// mailList is a sink for addresses of mail.
type mailList struct{ into *[]string }

func (s mailList) read(r *reader, n *node, name string) {
	var items []string
	var nodes []*node
	list{into: &items, nodes: &nodes}.read(r, n, name)
	for i, item := range items {
		if item != "" && checkMailAddress(item) != nil {
			r.refuse(nodes[i], codeHost, "an item of %s is not an address of mail, such as ops@example.com", name)
		}
	}
	*s.into = items
}

func checkEmail(r *reader, n *node, c *jobs.EmailChannel) {
	host, _, _ := net.SplitHostPort(c.Server)
	ip := net.ParseIP(host)
	switch {
	case c.Username == "" && c.Password != "":
		r.refuse(within(n, "password"), codeRequired, "email.password is set and email.username is not; a login needs both")
	case c.Username != "" && c.Password == "":
		r.refuse(within(n, "username"), codeRequired, "email.username is set and email.password is not; a login needs both")
	case c.Password != "" && c.TLS == "none" && host != "localhost" && !ip.IsLoopback():
		r.refuse(within(n, "tls"), codeConflict, "tls: none would send the password in clear to %s; use starttls or tls, or remove the login", abbreviate(c.Server))
	}
}

// channelMap is a sink for channels by name.
type channelMap struct{ into *map[string]jobs.Channel }

func (channelMap) empty() string { return "{}" }

func (s channelMap) read(r *reader, n *node, name string) {
	if n.kind != kindMap {
		r.refuse(n, codeType, "%s must be a map such as %s, not %s", name, channelsShape, n.describe())
		return
	}
	r.channels = map[string]bool{}
	all := make(map[string]jobs.Channel, len(n.pairs))
	for _, p := range n.pairs {
		if !r.spend() {
			return
		}
		own := name + "." + abbreviate(p.key.text)
		switch {
		case p.key.kind != kindText: // reported with the tree
			continue
		case !databaseName.MatchString(p.key.text):
			r.refuse(p.key, codeChannel, "the name of a channel must be 1 to 32 letters, digits, _ and -, not %q", abbreviate(p.key.text))
			continue
		}
		r.channels[p.key.text] = true
		if p.value.kind != kindMap {
			r.refuse(p.value, codeType, "%s must be a map such as %s, not %s", own, channelShape, p.value.describe())
			continue
		}
		all[p.key.text] = r.channel(p, own)
	}
	*s.into = all
}

func (r *reader) channel(p pair, name string) jobs.Channel {
	var d channelDraft
	setDefaults(channelFields(), &d)
	at := table[channelDraft]{fields: channelFields(), where: " in " + name, prefix: name + "."}.read(r, p.value, &d)
	c := jobs.Channel{Name: p.key.text}
	var given []string
	for _, kind := range channelKinds {
		if at.has(kind) {
			given = append(given, kind)
		}
	}
	switch {
	case len(given) == 0:
		r.refuse(p.key, codeRequired, "the channel %s goes nowhere; give it one of %s", p.key.text, series(channelKinds, "and"))
	case len(given) > 1:
		r.refuse(p.key, codeConflict, "the channel %s has %s; a channel goes to one place, so make it several channels", p.key.text, series(given, "and"))
	case given[0] == "webhook":
		c.Webhook = &d.webhook
	case given[0] == "slack":
		c.Slack = &d.slack
	default:
		c.Email = &d.email
	}
	return c
}

func (channelNames) schema() *schema {
	return &schema{Type: "array", Items: &schema{Type: "string", MinLength: 1}}
}

func (mailList) schema() *schema { return list{}.schema() }

func (channelMap) schema() *schema {
	out := tableSchema(channelFields())
	for _, kind := range channelKinds {
		out.OneOf = append(out.OneOf, &schema{Required: []string{kind}})
	}
	return mapSchema(patternSchema(databaseName.String()), out)
}
