package database

import (
	"crypto/tls"
	"errors"
	"io/fs"
	"net"

	"github.com/ncruces/go-sqlite3"
)

// Denied reports whether the server knows the role and does not let it do what it wanted.
func Denied(err error) bool { return SQLState(err) == "42501" }

// Remedy says what to do about an error of opening a database or asking it: half a sentence, with nothing of the URL in it; "" when
// the error does not say more than that nobody answers.
func Remedy(err error) string {
	if text := remedyState(SQLState(err)); text != "" {
		return text
	}
	if text := remedySQLite(err); text != "" {
		return text
	}
	var name *net.DNSError
	var untrusted *tls.CertificateVerificationError
	switch {
	case errors.Is(err, errReadOnly):
		return "name the primary in the URL; a primary has default_transaction_read_only = off"
	case errors.Is(err, errNoTLS):
		return "let the server offer TLS (ssl = on); sslmode=disable in the URL is for a server on this machine"
	case errors.As(err, &untrusted):
		return "name the authority of the server's certificate with sslrootcert=FILE, and the host as the certificate has it"
	case errors.As(err, &name):
		return "correct the host in the URL, or the name service of this machine"
	default:
		return ""
	}
}

// remedyState is for what the server of PostgreSQL answers; "" when there is nothing to say about it.
func remedyState(state string) string {
	switch state {
	case "28P01", "28000":
		return "correct the user and the password in the URL (a % in it is written %25); pg_hba.conf of the server says who may come from where"
	case "3D000":
		return "correct the name of the database in the URL, or make it: CREATE DATABASE ... OWNER ..."
	case "42501":
		return "let the tables' owner GRANT it; `cronlatch doctor` lists what is missing"
	case "53300":
		return "raise max_connections of the server or the limit of the role, or put a pooler in front"
	case "57P03":
		return "wait: the server starts up, or recovers"
	default:
		return ""
	}
}

func remedySQLite(err error) string {
	switch {
	case isSQLite(err, sqlite3.NOTADB):
		return "name another file: this one is not SQLite's"
	case isSQLite(err, sqlite3.CORRUPT):
		return "stop everything that uses the file, keep a copy, and restore a backup; sqlite3 FILE .recover saves what can be read"
	case isSQLite(err, sqlite3.READONLY, sqlite3.CANTOPEN), errors.Is(err, fs.ErrPermission):
		return "give this user the file and its folder, to read and to write"
	case isSQLite(err, sqlite3.FULL):
		return "make room on the disk"
	case errors.Is(err, ErrRefused):
		return "correct the path in the URL, or what is there"
	default:
		return ""
	}
}
