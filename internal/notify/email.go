package notify

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"net/smtp"
	"net/textproto"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/cronlatch/cronlatch/internal/output"
	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/scheduler"
)

// How the connection to a mail server is protected.
const (
	tlsNone     = "none"
	tlsImplicit = "tls"
	tlsStart    = "starttls" // and "" means the same
)

const endOfData = "the end of DATA"

// errPlain keeps a password from being sent where others can read it.
var errPlain = errors.New(
	"the password is not sent without TLS, except to this host: tls: starttls, or tls: tls")

func (c courier) email(ctx context.Context, ch *jobs.EmailChannel, messages []scheduler.Message, now time.Time) error {
	doc, err := emailOf(ch, messages, now)
	if err != nil {
		return err
	}
	host, _, err := net.SplitHostPort(ch.Server)
	if err != nil {
		return errors.New("server is not host:port")
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", ch.Server)
	if err != nil {
		return fmt.Errorf("connecting to the mail server: %w", plainly(err))
	}
	defer func() { _ = conn.Close() }()
	deadline, _ := ctx.Deadline()
	if err := conn.SetDeadline(deadline); err != nil {
		return fmt.Errorf("connecting to the mail server: %w", plainly(err))
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	return converse(conn, ch, host, &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12, RootCAs: c.roots}, doc)
}

// converse has the conversation with the mail server.
func converse(conn net.Conn, ch *jobs.EmailChannel, host string, config *tls.Config, doc []byte) error {
	if ch.TLS == tlsImplicit {
		conn = tls.Client(conn, config)
	}
	client, err := smtp.NewClient(conn, host)
	if err != nil {
		return step("the greeting", err)
	}
	if err := client.Hello(helloName(conn.LocalAddr())); err != nil {
		return step("the greeting", err)
	}
	if err := secure(client, ch, host, config); err != nil {
		return err
	}
	return deliver(client, ch, doc)
}

// helloName is how this host calls itself: its full name, and where it has none its address (RFC 5321, 4.1.3). Relays turn
// away who says "localhost".
func helloName(local net.Addr) string {
	if name, err := os.Hostname(); err == nil && fullName.MatchString(name) {
		return name
	}
	tcp, ok := local.(*net.TCPAddr)
	if !ok {
		return "localhost"
	}
	if ip4 := tcp.IP.To4(); ip4 != nil {
		return "[" + ip4.String() + "]"
	}
	return "[IPv6:" + tcp.IP.String() + "]"
}

var fullName = regexp.MustCompile(`^[A-Za-z0-9-]+(\.[A-Za-z0-9-]+)+$`)

// secure makes the connection one that nobody else reads, as far as the channel wants it, and logs in.
func secure(client *smtp.Client, ch *jobs.EmailChannel, host string, config *tls.Config) error {
	if ch.TLS != tlsNone && ch.TLS != tlsImplicit {
		if has, _ := client.Extension("STARTTLS"); !has {
			return errors.New("the mail server has no STARTTLS")
		}
		if err := client.StartTLS(config); err != nil {
			return step("STARTTLS", err)
		}
	}
	if ch.Username != "" {
		if _, safe := client.TLSConnectionState(); !safe && !isLoopback(host) {
			return errPlain
		}
		if err := client.Auth(smtp.PlainAuth("", ch.Username, ch.Password.Reveal(), host)); err != nil {
			return step("AUTH", err)
		}
	}
	return nil
}

// deliver hands the mail over.
func deliver(client *smtp.Client, ch *jobs.EmailChannel, doc []byte) error {
	from, _ := mail.ParseAddress(ch.From) // emailOf has read it
	if err := client.Mail(from.Address); err != nil {
		return step("MAIL FROM", err)
	}
	refused, err := recipients(client, ch.To)
	if err != nil {
		return err
	}
	w, err := client.Data()
	if err != nil {
		return step("DATA", err)
	}
	if _, err := w.Write(doc); err != nil {
		return step("DATA", err)
	}
	if err := w.Close(); err != nil {
		return step(endOfData, err)
	}
	_ = client.Quit() // the mail is accepted
	return refused
}

// recipients names them. One that the server does not know (somebody has left) is no reason that nobody hears of
// anything: refused says so when others are taken.
func recipients(client *smtp.Client, to []string) (refused, err error) {
	taken := 0
	var first error
	for i, text := range to {
		address, _ := mail.ParseAddress(text)
		err := client.Rcpt(address.Address)
		answer, isAnswer := errors.AsType[*textproto.Error](err)
		switch {
		case err == nil:
			taken++
		case !isAnswer:
			return nil, step("RCPT TO", err)
		case first == nil:
			first = step("RCPT TO", err)
			refused = &partlyError{fmt.Sprintf("the mail server answered %d to recipient %d of %d: the mail went without", answer.Code, i+1, len(to))}
		}
	}
	if taken == 0 {
		return nil, first
	}
	return refused, nil
}

// partlyError is a message that arrived, but not everywhere.
type partlyError struct{ text string }

func (e *partlyError) Error() string { return e.text }

func isLoopback(host string) bool { return host == "localhost" || host == "127.0.0.1" || host == "::1" }

// step is an error of the conversation: what was said, and the number of the answer. Its text is the server's, and stays out.
func step(what string, err error) error {
	if answer, ok := errors.AsType[*textproto.Error](err); ok {
		return &refusedError{
			text:    fmt.Sprintf("the mail server answered %d to %s", answer.Code, what),
			content: what == endOfData && answer.Code/100 == 5,
		}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("the mail server closed the connection at %s", what)
	}
	return fmt.Errorf("at %s: %w", what, plainly(err))
}

// emailOf is the mail. Job names come from files of other people: nothing in them makes a header.
func emailOf(ch *jobs.EmailChannel, messages []scheduler.Message, now time.Time) ([]byte, error) {
	from, err := mail.ParseAddress(ch.From)
	if err != nil {
		return nil, errors.New("from is not an address")
	}
	var to []string
	for _, text := range ch.To {
		address, err := mail.ParseAddress(text)
		if err != nil {
			return nil, errors.New("to is not a list of addresses")
		}
		to = append(to, address.String())
	}
	if to == nil {
		return nil, errors.New("to is empty")
	}
	_, domain, _ := strings.Cut(from.Address, "@")
	var b bytes.Buffer
	for _, header := range [][2]string{
		{"From", from.String()},
		{"To", strings.Join(to, ",\r\n ")},
		{"Subject", folded(mime.QEncoding.Encode("utf-8", subject(messages)))},
		{"Date", now.UTC().Format(time.RFC1123Z)},
		{"Message-ID", "<" + idOf(messages) + "@" + domain + ">"},
		{"Auto-Submitted", "auto-generated"},
		{"MIME-Version", "1.0"},
		{"Content-Type", "text/plain; charset=utf-8"},
		{"Content-Transfer-Encoding", "quoted-printable"},
	} {
		fmt.Fprintf(&b, "%s: %s\r\n", header[0], header[1])
	}
	b.WriteString("\r\n")
	w := quotedprintable.NewWriter(&b)
	for _, line := range lines(messages) {
		_, _ = w.Write([]byte(output.Clean(line) + "\r\n")) // a buffer takes everything
	}
	_ = w.Close()
	return b.Bytes(), nil
}

// folded puts each word of an encoded header on a line of its own: a line may have 998 bytes (RFC 5322, 2.1.1), and 150 letters
// that are not ASCII have more.
func folded(header string) string { return strings.ReplaceAll(header, "?= =?", "?=\r\n =?") }

// subject is one line, and not a long one.
func subject(messages []scheduler.Message) string {
	first := &messages[0]
	text := fmt.Sprintf("[cronlatch] %s: %s", first.Event, first.Job)
	if first.Job == "" {
		text = fmt.Sprintf("[cronlatch] %s", first.Event)
	}
	if len(messages) > 1 {
		text += fmt.Sprintf(" and %d more", len(messages)-1)
	}
	if runes := []rune(output.Clean(text)); len(runes) > 150 {
		return string(runes[:150]) + "..."
	}
	return output.Clean(text)
}
