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
	if err := secure(client, ch, host, config); err != nil {
		return err
	}
	return deliver(client, ch, doc)
}

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
	for _, to := range ch.To {
		address, _ := mail.ParseAddress(to)
		if err := client.Rcpt(address.Address); err != nil {
			return step("RCPT TO", err)
		}
	}
	w, err := client.Data()
	if err != nil {
		return step("DATA", err)
	}
	if _, err := w.Write(doc); err != nil {
		return step("DATA", err)
	}
	if err := w.Close(); err != nil {
		return step("the end of DATA", err)
	}
	_ = client.Quit() // the mail is accepted
	return nil
}

func isLoopback(host string) bool { return host == "localhost" || host == "127.0.0.1" || host == "::1" }

// step is an error of the conversation: what was said, and the number of the answer. Its text is the server's, and stays out.
func step(what string, err error) error {
	if answer, ok := errors.AsType[*textproto.Error](err); ok {
		return fmt.Errorf("the mail server answered %d to %s", answer.Code, what)
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
		{"Subject", mime.QEncoding.Encode("utf-8", subject(messages))},
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
