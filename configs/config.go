package configs

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/cronlatch/cronlatch/jobs"
)

// Config is a configuration without a problem. It is immutable.
type Config struct {
	Path string // as it was given to Load
	Dir  string // the directory of the file: where jobs run, and where relative paths start; absolute after Load

	// Include is what this file and those that it includes include, and the files that their values name (${file:...},
	// sql.file, calendars): patterns of package filepath that start where Path starts. Who follows the file follows them, too.
	Include []string

	Version      int
	Database     Database
	Listen       string // host:port, or "unix:" and a path
	Auth         Auth
	TLS          TLS
	BehindProxy  bool     // a proxy in front ends TLS
	AllowedHosts []string // further names that requests may ask for
	Lock         Lock
	Labels       map[string]string // of this replica, for Job.OnlyOn; nil is none
	Capacity     int               // how many runs this replica has at a time, at least 1
	DrainTimeout time.Duration     // for running jobs after SIGTERM
	Log          Log
	History      jobs.History            // how long runs are kept, of jobs that say nothing themselves
	Channels     map[string]jobs.Channel // that jobs notify, by name
	Tracing      Tracing

	Jobs []*jobs.Job // sorted by name
	// JobHashes are of the definition of each job, by name: equal hashes mean equal definitions in one program.
	JobHashes map[string]string
	Hash      string // of the definitions and the zone data's version, in hex; two replicas with equal hashes agree on everything that runs
}

// Database is where the state is kept.
type Database struct {
	URL string // "postgres://..." or "sqlite:path"; "" when the file says nothing. It may hold a password
}

// String hides the URL: configurations are logged.
func (Database) String() string { return "database{***}" }

// GoString hides the URL.
func (Database) GoString() string { return "configs.Database{***}" }

// MarshalText hides the URL, in JSON and elsewhere.
func (Database) MarshalText() ([]byte, error) { return []byte("***"), nil }

// Auth is how callers of the HTTP API are told apart.
type Auth struct {
	None      bool // nobody is asked who they are
	Tokens    []Token
	TokenFile string // of the generated admin token; relative to Dir
}

// HasAdmin reports whether a token of the configuration is an admin's: then none is generated.
func (a Auth) HasAdmin() bool {
	return slices.ContainsFunc(a.Tokens, func(t Token) bool { return t.Role == RoleAdmin })
}

// DefaultTokenFile is where the generated admin token is kept, beside the configuration.
const DefaultTokenFile = "cronlatch.token"

// AdminID is the id of the generated admin token.
const AdminID = "admin"

// The roles of tokens; what they may do is in internal/auth.
const (
	RoleViewer   = "viewer"
	RoleLocker   = "locker"
	RoleOperator = "operator"
	RoleAdmin    = "admin"
)

// Token is who may call the API. The token itself is not in a configuration.
type Token struct {
	ID        string
	SHA256    string // of the whole token, 64 hex digits in lower case
	Role      string
	Prefix    string    // of the names that a locker may lock; "" is every name
	ExpiresAt time.Time // zero is never
}

// TLS is the certificate of the listener. Both files or none; relative to Dir.
type TLS struct {
	Cert string // the chain in PEM form, the server's own certificate first
	Key  string
}

// Enabled reports whether the listener speaks TLS.
func (t TLS) Enabled() bool { return t.Cert != "" }

// Lock is how long locks live.
type Lock struct {
	TTL           time.Duration // without renewal, at least 1 s
	TakeoverGrace time.Duration // after the expiry, before another replica takes over
	KeepFor       time.Duration // how long the row of a lock that nobody holds is kept
}

// LogFormat is the form of the daemon's log.
type LogFormat string

// The forms of the log.
const (
	LogAuto    LogFormat = "auto" // console on a terminal, JSON otherwise
	LogJSON    LogFormat = "json"
	LogConsole LogFormat = "console"
)

// Log is what the daemon's own log shows; it does not touch the audit.
type Log struct {
	Level  string // debug, info, warn or error
	Format LogFormat
}

// Tracing is where spans go; without an endpoint there are none.
type Tracing struct {
	Endpoint string // the URL of a collector that takes OTLP over HTTP
	Headers  map[string]jobs.Secret
}

// File is the path of a file that the configuration names: relative ones start at the configuration.
func (c *Config) File(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(c.Dir, name)
}

// ErrUnknownJob is wrapped by the error of Config.Job.
var ErrUnknownJob = errors.New("unknown job")

// Job finds a job by its literal name. The error of an unknown name wraps ErrUnknownJob and suggests a known one.
func (c *Config) Job(name string) (*jobs.Job, error) {
	names := make([]string, len(c.Jobs))
	for i, job := range c.Jobs {
		if job.Name == name {
			return job, nil
		}
		names[i] = job.Name
	}
	return nil, fmt.Errorf("%w %q in %s%s", ErrUnknownJob, abbreviate(name), c.Path, didYouMean(name, names))
}
