package database

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"testing"

	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/assert"
)

// Whoever cannot get in is told what to do about that, and not asked whether the server runs that has just answered.
func TestRemedies(t *testing.T) {
	t.Parallel()
	state := func(code string) error { return &longError{answer{code: code}} }
	for _, c := range []struct {
		err  error
		want string // "" is none
	}{
		{errors.New("x"), ""},
		{context.DeadlineExceeded, ""},
		{state("28P01"), "password"},
		{state("28000"), "pg_hba.conf"},
		{state("3D000"), "CREATE DATABASE"},
		{state("42501"), "GRANT"},
		{state("53300"), "max_connections"},
		{state("57P03"), "wait"},
		{state("23505"), ""},
		{errReadOnly, "primary"},
		{errNoTLS, "sslmode"},
		{&tls.CertificateVerificationError{Err: errors.New("x")}, "sslrootcert"},
		{&net.DNSError{}, "host"},
		{sqlite3.NOTADB, "another file"},
		{sqlite3.CORRUPT, "backup"},
		{sqlite3.READONLY, "folder"},
		{sqlite3.FULL, "room"},
		{fs.ErrPermission, "folder"},
		{ErrRefused, "path"},
	} {
		got := Remedy(fmt.Errorf("connecting: %w", &connectError{errs: []error{c.err}}))
		assert.Equal(t, c.want == "", got == "", "%v: %q", c.err, got)
		assert.Contains(t, got, c.want, "%v", c.err)
	}
	assert.True(t, Denied(fmt.Errorf("x: %w", state("42501"))))
	assert.False(t, Denied(state("28P01")))
}
