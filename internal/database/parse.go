package database

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

const (
	defaultConnectTimeout = 5 * time.Second
	maxConnectTimeout     = 10 * time.Minute
)

// errGarbled is the one complaint when an @ stands behind the hosts: most likely an unencoded character of the password
// ended the user part early, and any other complaint would repeat a piece of the password.
var errGarbled = errors.New("there is an @ behind the hosts: what a URL contains of / ? # @ : % or spaces, in the password for " +
	"example, must be percent-encoded (%2F for /, %40 for @)")

// parsePostgres reads what follows postgres://.
func parsePostgres(rest string, getenv func(string) string) (Target, error) {
	u := splitURL(rest)
	if strings.Contains(u.path+u.query, "@") {
		return Target{}, errGarbled
	}
	pg, err := u.target(getenv)
	if err != nil {
		return Target{}, err
	}
	return Target{Kind: Postgres, pg: pg}, nil
}

// rawURL is a PostgreSQL URL cut into its parts, still percent-encoded. net/url cannot be used: it does not know
// several hosts, and its errors repeat the URL.
type rawURL struct {
	user, password string
	hosts          string
	path, query    string
}

func splitURL(rest string) rawURL {
	var u rawURL
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	authority, tail := rest[:end], rest[end:]
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		u.user, u.password, _ = strings.Cut(authority[:at], ":")
		authority = authority[at+1:]
	}
	u.hosts = authority
	u.path, u.query, _ = strings.Cut(tail, "?")
	u.path = strings.TrimPrefix(u.path, "/")
	return u
}

// params are the settings of a URL over those of the environment, each with a name that is safe to show.
type params struct {
	values map[string]string
	getenv func(string) string
}

// environment maps our parameter names to libpq's variables.
var environment = map[string]string{ //nolint:gochecknoglobals // a constant table
	"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "password": "PGPASSWORD", "dbname": "PGDATABASE",
	"sslmode": "PGSSLMODE", "sslrootcert": "PGSSLROOTCERT", "sslcert": "PGSSLCERT", "sslkey": "PGSSLKEY",
	"target_session_attrs": "PGTARGETSESSIONATTRS", "connect_timeout": "PGCONNECT_TIMEOUT",
	"application_name": "PGAPPNAME", "passfile": "PGPASSFILE", "search_path": "",
}

func (p params) get(name string) string {
	if v, ok := p.values[name]; ok {
		return v
	}
	if env := environment[name]; env != "" {
		return p.getenv(env)
	}
	return ""
}

// decode fills the parameters from the URL's parts; a part of the URL proper wins over ?name=value.
func (u rawURL) decode(getenv func(string) string) (params, error) {
	p := params{values: map[string]string{}, getenv: getenv}
	if strings.ContainsAny(u.path, "/#") || strings.Contains(u.query, "#") {
		return p, errors.New("the URL has a / or # after the name of the database: percent-encode it")
	}
	for pair := range strings.SplitSeq(u.query, "&") {
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		if err := p.set(name, value, "parameter "); err != nil {
			return p, err
		}
	}
	for _, part := range []struct{ name, raw string }{{"user", u.user}, {"password", u.password}, {"dbname", u.path}} {
		if part.raw == "" {
			continue
		}
		if err := p.set(part.name, part.raw, "the URL's "); err != nil {
			return p, err
		}
	}
	return p, nil
}

func (p params) set(name, raw, what string) error {
	if _, known := environment[name]; !known {
		if !isWord(name) {
			return errors.New("a parameter of the URL is not a name")
		}
		return fmt.Errorf("parameter %s is not known (known: sslmode, sslrootcert, sslcert, sslkey, "+
			"target_session_attrs, connect_timeout, application_name, search_path, host, port, user, password, "+
			"dbname, passfile)", name)
	}
	value, err := url.PathUnescape(raw) // + stays +, as in libpq
	if err != nil || strings.ContainsRune(value, 0) {
		return fmt.Errorf("%s%s is not percent-encoded text: a %% must be written %%25", what, name)
	}
	p.values[name] = value
	return nil
}

func (u rawURL) target(getenv func(string) string) (pgTarget, error) {
	p, err := u.decode(getenv)
	if err != nil {
		return pgTarget{}, err
	}
	pg := pgTarget{
		user: p.get("user"), database: p.get("dbname"), appName: p.get("application_name"),
		searchPath: p.get("search_path"),
		tls:        tlsFiles{root: p.get("sslrootcert"), cert: p.get("sslcert"), key: p.get("sslkey")},
	}
	if pg.user == "" {
		pg.user = getenv("USER") // libpq's default: the name of the operating system's user
	}
	if pg.user == "" {
		return pgTarget{}, errors.New("the URL names no user (postgres://USER@HOST/DATABASE) and PGUSER is not set")
	}
	if pg.database == "" {
		pg.database = pg.user
	}
	if pg.connectTimeout, err = connectTimeout(p.get("connect_timeout")); err != nil {
		return pgTarget{}, err
	}
	if pg.readWrite, err = sessionAttrs(p.get("target_session_attrs")); err != nil {
		return pgTarget{}, err
	}
	if pg.hosts, err = u.hostList(p); err != nil {
		return pgTarget{}, err
	}
	if pg.tls, err = pg.tls.complete(getenv("HOME")); err != nil {
		return pgTarget{}, err
	}
	return pg, pg.fillSecrets(p)
}

func connectTimeout(text string) (time.Duration, error) {
	if text == "" {
		return defaultConnectTimeout, nil
	}
	d, err := time.ParseDuration(text)
	if n, numErr := strconv.Atoi(text); numErr == nil {
		d, err = time.Duration(min(n, int(maxConnectTimeout/time.Second)+1))*time.Second, nil
	}
	if err != nil || d < time.Millisecond || d > maxConnectTimeout {
		return 0, errors.New("connect_timeout must be seconds (5) or a duration (500ms), more than 0 and at most 10m")
	}
	return d, nil
}

func sessionAttrs(text string) (readWrite bool, err error) {
	switch text {
	case "", "read-write", "primary":
		return true, nil
	case "any":
		return false, nil
	default:
		return false, errors.New("target_session_attrs must be read-write (the default), primary or any: " +
			"cronlatch writes")
	}
}
