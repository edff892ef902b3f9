package database_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/internal/pgserver"
)

// authority signs certificates for tests.
type authority struct {
	t    *testing.T
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	require.NoError(t, err)
	cert, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	return authority{t: t, cert: cert, key: key}
}

// issue writes name.crt and name.key for the common name, which is a DNS name too, into dir, and gives them to dir's owner.
func (a authority) issue(dir, name, commonName string) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(a.t, err)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: commonName}, DNSNames: []string{commonName},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}, a.cert, key.Public(), a.key)
	require.NoError(a.t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(a.t, err)
	a.write(dir, name+".crt", "CERTIFICATE", der)
	a.write(dir, name+".key", "PRIVATE KEY", private)
}

func (a authority) root(dir string) string {
	a.t.Helper()
	return a.write(dir, "root.crt", "CERTIFICATE", a.cert.Raw)
}

func (a authority) write(dir, name, kind string, der []byte) string {
	a.t.Helper()
	path := filepath.Join(dir, name)
	giveFile(a.t, path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	return path
}

// giveFile writes a file for the owner of its folder: the server's user, when the test is root.
func giveFile(t *testing.T, path string, data []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, data, 0o600))
	info, err := os.Stat(filepath.Dir(path))
	require.NoError(t, err)
	owner, ok := info.Sys().(*syscall.Stat_t)
	require.True(t, ok)
	require.NoError(t, os.Chown(path, int(owner.Uid), int(owner.Gid)))
}

// setRules replaces pg_hba.conf. The local socket stays open for the superuser, who waits for the change: a new session
// shows when the postmaster that made it had last read its files.
func setRules(t *testing.T, s *pgserver.Server, rules string) {
	t.Helper()
	giveFile(t, filepath.Join(s.DataDir(), "pg_hba.conf"), []byte("local all postgres trust\n"+rules+"\n"))
	before := loadedAt(t, s)
	_, err := openSocket(t, s).Main.ExecContext(t.Context(), "SELECT pg_reload_conf()")
	require.NoError(t, err)
	require.Eventually(t, func() bool { return loadedAt(t, s).After(before) }, patience, 20*time.Millisecond)
}

func loadedAt(t *testing.T, s *pgserver.Server) (at time.Time) {
	t.Helper()
	require.NoError(t, openSocket(t, s).Main.NewRaw("SELECT pg_conf_load_time()").Scan(t.Context(), &at))
	return at
}

func openSocket(t *testing.T, s *pgserver.Server) *database.DB {
	t.Helper()
	_, port, err := net.SplitHostPort(s.Addr())
	require.NoError(t, err)
	return open(t, "postgres://postgres@/postgres?host="+s.SocketDir()+"&port="+port, database.Options{})
}

// startTLS runs a server with a certificate for localhost, and returns the folder with root.crt and the client's pair.
func startTLS(t *testing.T) (s *pgserver.Server, dir string) {
	t.Helper()
	s = pgserver.Start(t)
	ca := newAuthority(t)
	ca.issue(s.DataDir(), "server", "localhost")
	ca.root(s.DataDir())
	dir = t.TempDir()
	ca.root(dir)
	ca.issue(dir, "client", "postgres")
	db := openSocket(t, s)
	for _, q := range []string{"ALTER SYSTEM SET ssl = on", "ALTER SYSTEM SET ssl_ca_file = 'root.crt'"} {
		_, err := db.Main.ExecContext(t.Context(), q)
		require.NoError(t, err)
	}
	s.Stop(pgserver.Fast)
	s.Restart()
	return s, dir
}

// encrypted reports whether the connection that the URL leads to is, or the error of connecting.
func encrypted(t *testing.T, url string) (on bool, err error) {
	t.Helper()
	db := open(t, url, database.Options{})
	var first int
	err = db.Main.NewRaw("SELECT ssl, pid FROM pg_stat_ssl WHERE pid = pg_backend_pid()").Scan(t.Context(), &on, &first)
	if err == nil {
		assert.Equal(t, first, backend(t, db.Main.DB), "the connection is used again")
	}
	return on, err
}

func TestTLSModes(t *testing.T) {
	t.Parallel()
	s, dir := startTLS(t)
	_, port, err := net.SplitHostPort(s.Addr())
	require.NoError(t, err)
	otherRoot := newAuthority(t).root(t.TempDir())
	const query = "/postgres?connect_timeout=60&sslmode=" // reading the system's authorities takes a busy machine long
	named, byAddress := "postgres://postgres@localhost:"+port+query, "postgres://postgres@127.0.0.1:"+port+query
	root := "&sslrootcert=" + dir + "/root.crt"
	pair := "&sslcert=" + dir + "/client.crt&sslkey=" + dir + "/client.key"

	type want struct {
		url string
		tls bool
		err string
	}
	check := func(rules string, cases []want) {
		t.Helper()
		setRules(t, s, rules)
		for _, c := range cases {
			on, err := encrypted(t, c.url)
			if c.err != "" {
				require.ErrorContains(t, err, c.err, "%s: %s", rules, c.url)
				assert.True(t, database.Unavailable(err))
				continue
			}
			require.NoError(t, err, "%s: %s", rules, c.url)
			assert.Equal(t, c.tls, on, "%s: %s", rules, c.url)
		}
	}
	check("host all all all trust", []want{
		{url: named + "disable"},
		{url: named + "allow"},
		{url: named + "prefer", tls: true},
		{url: named + "require", tls: true},
		{url: named + "verify-full" + root, tls: true},
		{url: named + "verify-ca" + root, tls: true},
		{url: byAddress + "verify-ca" + root, tls: true},
		{url: byAddress + "verify-full" + root, err: "127.0.0.1 because it doesn't contain any IP SANs"},
		{url: byAddress + "require" + root, tls: true},
		{url: named + "verify-full&sslrootcert=" + otherRoot, err: "signed by unknown authority"},
		{url: named + "verify-ca&sslrootcert=" + otherRoot, err: "signed by unknown authority"},
		{url: named + "require&sslrootcert=" + otherRoot, err: "signed by unknown authority"},
		{url: named + "verify-full&sslrootcert=system", err: "signed by unknown authority"},
	})
	check("hostssl all all all trust", []want{
		{url: named + "disable", err: "28000"},
		{url: named + "allow", tls: true},
		{url: named + "prefer", tls: true},
	})
	check("hostnossl all all all trust", []want{
		{url: named + "require", err: "28000"},
		{url: named + "prefer"},
		{url: named + "allow"},
	})
	check("hostssl all all all cert", []want{
		{url: named + "verify-full" + root + pair, tls: true},
		{url: named + "verify-full" + root, err: "certificate"},
	})
}

// Without TLS at the server, prefer goes on in plain text; the raw driver gives up.
func TestContractPreferFallsBack(t *testing.T) {
	t.Parallel()
	s := pgserver.Start(t)
	plain := "postgres://postgres@" + s.Addr() + "/postgres?sslmode="
	raw := openRaw(t, plain+"prefer")
	require.ErrorContains(t, raw.PingContext(t.Context()), "SSL is not enabled", "the raw driver falls back now")
	on, err := encrypted(t, plain+"prefer")
	require.NoError(t, err)
	assert.False(t, on)
	_, err = encrypted(t, plain+"require")
	require.ErrorContains(t, err, "the server does not offer it")
}

func TestOpenWarnsOfUnverifiedHosts(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]int{
		"": 0, "?sslmode=verify-full": 0, "?sslmode=verify-ca": 0,
		"?sslmode=require": 1, "?sslmode=prefer": 1, "?sslmode=allow": 1, "?sslmode=disable": 1,
	} {
		core, logs := observer.New(zap.WarnLevel)
		open(t, "postgres://u:"+canary+"@db.example.com,localhost/d"+query, database.Options{Logger: zap.New(core)})
		assert.Len(t, logs.All(), want, query)
		for _, e := range logs.All() {
			assert.Contains(t, e.Message, "sslmode=verify-full")
			assert.NotContains(t, e.ContextMap(), canary)
		}
	}
	_, err := database.Open(parse(t, "postgres://u@h/d?sslrootcert=/nowhere"), database.Options{})
	require.ErrorContains(t, err, "reading sslrootcert")
	empty := filepath.Join(t.TempDir(), "empty")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	_, err = database.Open(parse(t, "postgres://u@h/d?sslrootcert="+empty), database.Options{})
	require.ErrorContains(t, err, "has no certificate")
	_, err = database.Open(parse(t, "postgres://u@h/d?sslkey=/nowhere&sslcert=/nowhere"), database.Options{})
	require.ErrorContains(t, err, "reading sslcert and sslkey")
	_, err = database.Open(database.Target{}, database.Options{})
	require.Error(t, err)
}

func TestPasswords(t *testing.T) {
	t.Parallel()
	s := pgserver.Start(t)
	password := canary + " p@ss:/?#%\\é"
	_, err := openSocket(t, s).Main.NewRaw("CREATE ROLE u LOGIN PASSWORD ?", password).Exec(t.Context())
	require.NoError(t, err)
	passfile := filepath.Join(t.TempDir(), "pass")
	require.NoError(t, os.WriteFile(passfile, []byte(s.Addr()+":*:u:"+canary+" p@ss\\:/?#%\\\\é\n"), 0o600))
	connect := func(url string, pairs ...string) error {
		target, err := database.Parse(url, env(pairs...), "")
		require.NoError(t, err)
		db, err := database.Open(target, database.Options{})
		require.NoError(t, err)
		defer func() { require.NoError(t, db.Close()) }()
		err = db.Main.PingContext(t.Context())
		if err != nil {
			assert.NotContains(t, err.Error(), canary)
		}
		return err
	}
	for _, method := range []string{"scram-sha-256", "password"} {
		setRules(t, s, "host all all all "+method)
		good := "postgres://u:" + canary + "%20p%40ss%3A%2F%3F%23%25%5C%C3%A9@" + s.Addr() + "/postgres"
		require.NoError(t, connect(good), method)
		require.NoError(t, connect("postgres://u@"+s.Addr()+"/postgres", "PGPASSWORD", password), method)
		require.NoError(t, connect("postgres://u@"+s.Addr()+"/postgres", "PGPASSFILE", passfile), method)
		err := connect("postgres://u:" + canary + "@" + s.Addr() + "/postgres")
		assert.Equal(t, "28P01", database.SQLState(err), method)
		require.Error(t, connect("postgres://u@"+s.Addr()+"/postgres"), method)
	}
	require.ErrorContains(t, openRaw(t, "postgres://u@"+s.Addr()+"/postgres?sslmode=disable").PingContext(t.Context()), "28P01",
		"the raw driver reads PGPASSFILE now")
}
