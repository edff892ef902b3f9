package database

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// sslMode is libpq's sslmode.
type sslMode string

const (
	sslDisable    sslMode = "disable"     // never TLS
	sslAllow      sslMode = "allow"       // TLS only when the server insists
	sslPrefer     sslMode = "prefer"      // TLS when the server has it
	sslRequire    sslMode = "require"     // TLS, whoever answers
	sslVerifyCA   sslMode = "verify-ca"   // and a certificate of a trusted authority
	sslVerifyFull sslMode = "verify-full" // and the certificate is this host's
)

// defaultMode checks what the user asked for; without a wish, remote hosts are verified and local ones are plain.
// On loopback that is allow: a server that insists on TLS gets it, and the others lose no round trip.
func (h host) defaultMode(text string) (sslMode, error) {
	if h.unix() {
		return sslDisable, nil // as in libpq: there is no TLS on a Unix socket
	}
	switch mode := sslMode(text); mode {
	case "":
		if h.local() {
			return sslAllow, nil
		}
		return sslVerifyFull, nil
	case sslDisable, sslAllow, sslPrefer, sslRequire, sslVerifyCA, sslVerifyFull:
		return mode, nil
	default:
		return "", errors.New("sslmode must be disable, allow, prefer, require, verify-ca or verify-full")
	}
}

// verified reports whether a man in the middle would be noticed.
func (m sslMode) verified() bool { return m == sslVerifyFull || m == sslVerifyCA }

// attempt is one way to talk to a host.
type attempt int

const (
	plain       attempt = iota // no TLS
	tlsIfHas                   // TLS; plain when the server says that it has none
	tlsRequired                // TLS or an error
)

// attempts are the ways to try in order; the second only when the first failed because of TLS.
func (m sslMode) attempts() []attempt {
	switch m {
	case sslDisable:
		return []attempt{plain}
	case sslAllow:
		return []attempt{plain, tlsRequired}
	case sslPrefer:
		return []attempt{tlsIfHas, plain}
	default:
		return []attempt{tlsRequired}
	}
}

// tlsFiles are the certificate files of a Target. They are read anew for each connection, so that a renewed
// certificate needs no restart.
type tlsFiles struct{ root, cert, key string }

// complete checks the pair and adds libpq's default for the root certificate when that file is there. Without a root
// certificate (or with sslrootcert=system) the operating system's authorities count.
func (f tlsFiles) complete(home string) (tlsFiles, error) {
	if (f.cert == "") != (f.key == "") {
		return f, errors.New("sslcert and sslkey belong together: one of them is missing")
	}
	if f.root == "" && home != "" {
		path := filepath.Join(home, ".postgresql", "root.crt")
		if _, err := os.Stat(path); err == nil {
			f.root = path
		}
	}
	return f, nil
}

// config builds the TLS configuration for one host.
func (f tlsFiles) config(h host) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: h.name}
	if f.root != "" && f.root != "system" && h.mode.verified() {
		pem, err := os.ReadFile(f.root)
		if err != nil {
			return nil, fmt.Errorf("reading sslrootcert: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("reading sslrootcert: %s has no certificate", f.root)
		}
	}
	if f.cert != "" {
		pair, err := tls.LoadX509KeyPair(f.cert, f.key)
		if err != nil {
			return nil, fmt.Errorf("reading sslcert and sslkey: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	if h.mode != sslVerifyFull {
		// Go has no switch for "the chain but not the name", so both are off and the chain is checked by hand.
		c.InsecureSkipVerify = true
	}
	if h.mode == sslVerifyCA {
		c.VerifyConnection = verifyChain(c.RootCAs)
	}
	return c, nil
}

func verifyChain(roots *x509.CertPool) func(tls.ConnectionState) error {
	return func(s tls.ConnectionState) error {
		if len(s.PeerCertificates) == 0 {
			return errors.New("the server sent no certificate")
		}
		o := x509.VerifyOptions{Roots: roots, Intermediates: x509.NewCertPool()}
		for _, c := range s.PeerCertificates[1:] {
			o.Intermediates.AddCert(c)
		}
		_, err := s.PeerCertificates[0].Verify(o)
		return err
	}
}
