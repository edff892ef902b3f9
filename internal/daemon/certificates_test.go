package daemon

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// keyPair is a certificate for 127.0.0.1 that signs itself.
type keyPair struct{ cert, key []byte }

func newKeyPair(t *testing.T, name string) keyPair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Unix(0, 0), NotAfter: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	return keyPair{
		pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}
}

// write replaces both files, the way a tool does it: by renaming new ones.
func (p keyPair) write(t *testing.T, dir string) {
	t.Helper()
	writeFile(t, filepath.Join(dir, "tls.crt"), p.cert)
	writeFile(t, filepath.Join(dir, "tls.key"), p.key)
}

func writeFile(t *testing.T, path string, text []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(path+".new", text, 0o600))
	require.NoError(t, os.Rename(path+".new", path))
}

func (p keyPair) roots(t *testing.T) *x509.CertPool {
	t.Helper()
	pool := x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(p.cert))
	return pool
}

// certRig is a loaded certificate in a synctest bubble.
type certRig struct {
	*certificates

	dir string
	log *observer.ObservedLogs
}

func newCertRig(t *testing.T, p keyPair) *certRig {
	t.Helper()
	r := &certRig{dir: t.TempDir()}
	p.write(t, r.dir)
	core, lines := observer.New(zapcore.InfoLevel)
	var err error
	r.certificates, err = loadCertificates(filepath.Join(r.dir, "tls.crt"), filepath.Join(r.dir, "tls.key"), zap.New(core))
	require.NoError(t, err)
	r.log = lines
	return r
}

func (r *certRig) shows(t *testing.T, name string) {
	t.Helper()
	pair, err := r.config().GetCertificate(nil)
	require.NoError(t, err)
	assert.Equal(t, name, pair.Leaf.Subject.CommonName)
}

func (r *certRig) logged(t *testing.T, messages ...string) {
	t.Helper()
	got := []string{}
	for _, line := range r.log.TakeAll() {
		got = append(got, line.Message)
	}
	assert.Equal(t, messages, got)
}

func TestACertificateIsReplacedWithoutARestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newCertRig(t, newKeyPair(t, "one"))
		newKeyPair(t, "two").write(t, r.dir)
		r.shows(t, "one") // looked at less than a second ago
		time.Sleep(certificateAge)
		r.shows(t, "two")
		time.Sleep(certificateAge)
		r.shows(t, "two")
		r.logged(t, "the certificate was replaced")
	})
}

func TestABrokenCertificateChangesNothing(t *testing.T) {
	t.Parallel()
	const warning = "the new certificate cannot be used; the old one stays"
	synctest.Test(t, func(t *testing.T) {
		r, next := newCertRig(t, newKeyPair(t, "one")), newKeyPair(t, "two")
		writeFile(t, filepath.Join(r.dir, "tls.crt"), next.cert) // and the key not yet
		for range 3 {
			time.Sleep(certificateAge)
			r.shows(t, "one")
		}
		r.logged(t, warning)
		require.NoError(t, os.Remove(filepath.Join(r.dir, "tls.key")))
		for range 3 {
			time.Sleep(certificateAge)
			r.shows(t, "one")
		}
		r.logged(t, warning)
		writeFile(t, filepath.Join(r.dir, "tls.key"), next.key)
		time.Sleep(certificateAge)
		r.shows(t, "two")
		r.logged(t, "the certificate was replaced")
		writeFile(t, filepath.Join(r.dir, "tls.crt"), []byte("nonsense"))
		time.Sleep(certificateAge)
		r.shows(t, "two")
		r.logged(t, warning)
	})
}

func TestTheFirstCertificateMustBeGood(t *testing.T) {
	t.Parallel()
	dir, one, two := t.TempDir(), newKeyPair(t, "one"), newKeyPair(t, "two")
	keyPair{one.cert, two.key}.write(t, dir)
	_, err := loadCertificates(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"), zap.NewNop())
	require.ErrorContains(t, err, "loading the certificate of the listener: ")
	require.ErrorContains(t, err, "tls.key")
}

func TestOldVersionsOfTLSAreRefused(t *testing.T) {
	t.Parallel()
	r := newCertRig(t, newKeyPair(t, "one"))
	assert.EqualValues(t, tls.VersionTLS12, r.config().MinVersion)
}
