package daemon

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"os"
	"sync"
	"time"

	"go.uber.org/zap"
)

// certificateAge is how old the look at the certificate's files may be.
const certificateAge = time.Second

// certificates is the listener's certificate, as its files are now. Files that are broken or half replaced change
// nothing: the last good pair stays.
type certificates struct {
	certFile, keyFile string
	log               *zap.Logger

	mu     sync.Mutex
	good   *tls.Certificate
	looked time.Time
	seen   [sha256.Size]byte // of the files that good came from
	broken string            // the last error, which is logged once
}

// loadCertificates reads the pair for the first time, when it has to be good.
func loadCertificates(certFile, keyFile string, log *zap.Logger) (*certificates, error) {
	c := &certificates{certFile: certFile, keyFile: keyFile, log: log}
	if err := c.look(); err != nil {
		return nil, fmt.Errorf("loading the certificate of the listener: %w", err)
	}
	c.looked = time.Now()
	return c, nil
}

func (c *certificates) config() *tls.Config {
	return &tls.Config{
		MinVersion:     tls.VersionTLS12,
		NextProtos:     []string{"http/1.1"},
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return c.current(), nil },
	}
}

// current is the newest good pair.
func (c *certificates) current() *tls.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.looked) < certificateAge {
		return c.good
	}
	c.looked = time.Now()
	before := c.good
	switch err := c.look(); {
	case err != nil && err.Error() != c.broken:
		c.broken = err.Error()
		c.log.Warn("the new certificate cannot be used; the old one stays", zap.Error(err))
	case err == nil:
		c.broken = ""
		if c.good != before {
			c.log.Info("the certificate was replaced")
		}
	}
	return c.good
}

// look reads the files, and the pair in them when they are not those of the last good look.
func (c *certificates) look() error {
	cert, err := os.ReadFile(c.certFile)
	if err != nil {
		return err //nolint:wrapcheck // it names the file
	}
	key, err := os.ReadFile(c.keyFile)
	if err != nil {
		return err //nolint:wrapcheck // as above
	}
	sum := sha256.Sum256(bytes.Join([][]byte{cert, key}, []byte{0}))
	if c.good != nil && sum == c.seen {
		return nil
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return fmt.Errorf("%s and %s: %w", c.certFile, c.keyFile, err)
	}
	c.good, c.seen = &pair, sum
	return nil
}
