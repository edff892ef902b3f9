package notify

import (
	"bufio"
	"cmp"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"math/big"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/scheduler"
)

const password = "canary-in-the-password"

// mailServer is a small SMTP server for one conversation.
type mailServer struct {
	address  string
	roots    *x509.CertPool
	config   *tls.Config
	implicit bool
	offers   string            // a line of EHLO: STARTTLS, or nothing
	answers  map[string]string // in place of the good ones, by the first word, or the line

	said []string // what the client has said
	data string
	done chan struct{}
}

func newMailServer(t *testing.T, change func(*mailServer)) *mailServer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	cert := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, cert, cert, key.Public(), key)
	require.NoError(t, err)
	cert, err = x509.ParseCertificate(der)
	require.NoError(t, err)
	s := &mailServer{roots: x509.NewCertPool(), offers: "STARTTLS", done: make(chan struct{}), answers: map[string]string{}}
	s.roots.AddCert(cert)
	s.config = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}
	if change != nil {
		change(s)
	}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s.address = l.Addr().String()
	go func() {
		defer close(s.done)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		if s.implicit {
			conn = tls.Server(conn, s.config)
		}
		s.talk(conn)
	}()
	t.Cleanup(func() { _ = l.Close(); <-s.done })
	return s
}

func (s *mailServer) talk(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	r := bufio.NewReader(conn)
	_, _ = fmt.Fprint(conn, "220 test\r\n")
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			return
		}
		line = strings.TrimSpace(line)
		s.said = append(s.said, line)
		word, _, _ := strings.Cut(line, " ")
		if bad := cmp.Or(s.answers[line], s.answers[word]); bad != "" {
			_, _ = fmt.Fprint(conn, bad+" "+password+"\r\n") // some servers repeat what they got
			continue
		}
		switch word {
		case "EHLO":
			_, _ = fmt.Fprintf(conn, "250-test\r\n250-%s\r\n250 AUTH PLAIN\r\n", s.offers)
		case "STARTTLS":
			_, _ = fmt.Fprint(conn, "220 go\r\n")
			conn = tls.Server(conn, s.config)
			r = bufio.NewReader(conn)
		case "AUTH":
			_, _ = fmt.Fprint(conn, "235 ok\r\n")
		case "DATA":
			_, _ = fmt.Fprint(conn, "354 go\r\n")
			s.data = readMail(r)
			_, _ = fmt.Fprint(conn, "250 ok\r\n")
		case "QUIT":
			_, _ = fmt.Fprint(conn, "221 bye\r\n")
			return
		default:
			_, _ = fmt.Fprint(conn, "250 ok\r\n")
		}
	}
}

func readMail(r *bufio.Reader) string {
	var b strings.Builder
	for {
		line, err := r.ReadString('\n')
		if err != nil || line == ".\r\n" {
			return b.String()
		}
		b.WriteString(line)
	}
}

func (s *mailServer) channel() *jobs.EmailChannel {
	return &jobs.EmailChannel{
		Server: s.address, TLS: "starttls", Username: "me", Password: password, From: "Cron <cron@example.com>",
		To: []string{"ops@example.com", "Böb <bob@example.com>"},
	}
}

func (s *mailServer) mail(t *testing.T, ch *jobs.EmailChannel, messages []scheduler.Message) error {
	t.Helper()
	return courier{roots: s.roots}.send(t.Context(), &jobs.Channel{Name: "mail", Email: ch}, messages)
}

func TestAMail(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"starttls", "tls", "none", ""} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			s := newMailServer(t, func(s *mailServer) { s.implicit = how == "tls" })
			ch := s.channel()
			ch.TLS = how
			evil := event(1)
			evil.Job = "backup\r\nBcc: everybody@example.com\r\n\r\nä" + strings.Repeat("夜", 200)
			evil.Text = "first\r\n.\r\nMAIL FROM:<x@example.com> " + strings.Repeat("ö", 100)
			require.NoError(t, s.mail(t, ch, []scheduler.Message{evil, event(2)}))
			<-s.done
			auth := "AUTH PLAIN " + base64.StdEncoding.EncodeToString([]byte("\x00me\x00"+password))
			hello := "EHLO " + helloName(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
			want := []string{hello, "STARTTLS", hello, auth, "MAIL FROM:<cron@example.com>", "RCPT TO:<ops@example.com>", "RCPT TO:<bob@example.com>", "DATA", "QUIT"}
			if how == "tls" || how == "none" {
				want = want[2:]
			}
			assert.Equal(t, want, s.said)

			m, err := mail.ReadMessage(strings.NewReader(s.data))
			require.NoError(t, err)
			subject, err := new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject"))
			require.NoError(t, err)
			full := []rune(`[cronlatch] failure: backup\r\nBcc: everybody@example.com\r\n\r\nä` + strings.Repeat("夜", 200))
			assert.Equal(t, string(full[:150])+"...", subject)
			for line := range strings.SplitSeq(s.data, "\r\n") {
				assert.LessOrEqual(t, len(line), 90)
			}
			assert.Empty(t, m.Header.Get("Bcc"))
			assert.Equal(t, "<"+idOf([]scheduler.Message{evil, event(2)})+"@example.com>", m.Header.Get("Message-ID"))
			at, err := m.Header.Date()
			require.NoError(t, err)
			assert.WithinDuration(t, time.Now(), at, time.Minute)
			to, err := m.Header.AddressList("To")
			require.NoError(t, err)
			assert.Len(t, to, 2)
			assert.Equal(t, "Böb", to[1].Name)
			text, err := io.ReadAll(quotedprintable.NewReader(m.Body))
			require.NoError(t, err)
			assert.Equal(t, "[failure] first\\r\\n.\\r\\nMAIL FROM:<x@example.com> "+strings.Repeat("ö", 100)+"\r\n[failure] backup failed 2\r\n", string(text))
		})
	}
}

func TestWhatAMailServerRefuses(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		server func(*mailServer)
		change func(*jobs.EmailChannel)
		want   string
	}{
		"without STARTTLS":       {func(s *mailServer) { s.offers = "SIZE" }, nil, "the mail server has no STARTTLS"},
		"a wrong password":       {func(s *mailServer) { s.answers["AUTH"] = "535" }, nil, "the mail server answered 535 to AUTH"},
		"the sender":             {func(s *mailServer) { s.answers["MAIL"] = "550" }, nil, "the mail server answered 550 to MAIL FROM"},
		"a recipient":            {func(s *mailServer) { s.answers["RCPT"] = "550" }, nil, "the mail server answered 550 to RCPT TO"},
		"the mail":               {func(s *mailServer) { s.answers["DATA"] = "554" }, nil, "the mail server answered 554 to DATA"},
		"an unknown certificate": {func(s *mailServer) { s.roots = x509.NewCertPool() }, nil, "at STARTTLS: the certificate is not trusted"},
		"no recipient":           {nil, func(ch *jobs.EmailChannel) { ch.To = nil }, "to is empty"},
		"a bad sender":           {nil, func(ch *jobs.EmailChannel) { ch.From = "x\r\nBcc: y" }, "from is not an address"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newMailServer(t, tt.server)
			ch := s.channel()
			if tt.change != nil {
				tt.change(ch)
			}
			err := s.mail(t, ch, events(1))
			require.ErrorContains(t, err, tt.want)
			assert.NotContains(t, err.Error(), password)
			assert.Empty(t, s.dataAfter(t))
		})
	}
}

// Of several recipients one that the server does not take is no reason that nobody hears of anything, and it is told.
func TestOneRecipientOfSeveralIsRefused(t *testing.T) {
	t.Parallel()
	s := newMailServer(t, func(s *mailServer) { s.answers["RCPT TO:<ops@example.com>"] = "550" })
	err := s.mail(t, s.channel(), events(1))
	<-s.done
	partly := &partlyError{}
	require.ErrorAs(t, err, &partly)
	require.EqualError(t, err, "the mail server answered 550 to recipient 1 of 2: the mail went without")
	assert.Contains(t, s.said, "RCPT TO:<bob@example.com>")
	assert.Contains(t, s.data, "[failure] backup failed 0")
}

func TestAMailServerHearsAName(t *testing.T) {
	t.Parallel()
	for name, local := range map[string]net.Addr{
		`[192.0.2.7]`: &net.TCPAddr{IP: net.ParseIP("192.0.2.7")}, `[IPv6:2001:db8::1]`: &net.TCPAddr{IP: net.ParseIP("2001:db8::1")},
		"localhost": &net.UnixAddr{},
	} {
		if full, err := os.Hostname(); err == nil && strings.Contains(full, ".") {
			name = full
		}
		assert.Equal(t, name, helloName(local))
	}
}

// dataAfter ends the conversation and returns the mail.
func (s *mailServer) dataAfter(t *testing.T) string {
	t.Helper()
	conn, err := new(net.Dialer).DialContext(context.WithoutCancel(t.Context()), "tcp", s.address) // in case that nobody has called
	if err == nil {
		_ = conn.Close()
	}
	<-s.done
	return s.data
}

// A password goes over a line that others can read only within this host.
func TestAPasswordIsNotSentInTheClear(t *testing.T) {
	t.Parallel()
	assert.True(t, isLoopback("127.0.0.1"))
	assert.False(t, isLoopback("mail.example.com"))
	assert.False(t, isLoopback("localhost.example.com"))
	client, server := net.Pipe()
	s := &mailServer{offers: "SIZE", answers: map[string]string{}}
	over := make(chan struct{})
	go func() { defer close(over); s.talk(server) }()
	err := converse(client, &jobs.EmailChannel{
		TLS: "none", Username: "me", Password: password, From: "a@example.com", To: []string{"b@example.com"},
	}, "mail.example.com", &tls.Config{MinVersion: tls.VersionTLS12}, nil)
	require.ErrorIs(t, err, errPlain)
	_ = client.Close()
	<-over
	assert.Equal(t, []string{"EHLO localhost"}, s.said)
}
