package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/cronlatch/cronlatch/configs"
	"github.com/cronlatch/cronlatch/internal/audit"
	"github.com/cronlatch/cronlatch/internal/auth"
	"github.com/cronlatch/cronlatch/internal/daemon"
	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/locking"
)

// serveFlags are texts by the key of the configuration that they override; configs checks them like the file.
type serveFlags struct {
	replica string
	watch   watchFlag
	labels  []string
	keys    map[string]*string
}

func (a *app) serveCommand() *cobra.Command {
	f := &serveFlags{keys: map[string]*string{}}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the daemon: plan, claim and run the jobs of the configuration",
		Long: "serve is one replica. Start several with the same configuration and database, and every due occurrence runs on\n" +
			"exactly one of them. Without a database URL they share the SQLite file cronlatch.db beside the configuration.\n" +
			"Each flag is also a variable (CRONLATCH_LISTEN, CRONLATCH_LOCK_TTL, ...) and a key of the file; the flag wins.\n" +
			"The first Ctrl-C (or SIGTERM) lets running jobs finish within drain_timeout, the second one stops them now.\n" +
			"SIGHUP, `cronlatch reload` and a change of the file replace the jobs without touching what runs.",
		Example: "  $ cronlatch serve\n  $ cronlatch serve --replica b --listen 127.0.0.1:8421",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.serve(cmd.Context(), f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.replica, "replica", "", "name of this replica (CRONLATCH_REPLICA; default the host's name)")
	f.watch.add(cmd)
	for _, k := range serveKeys() {
		f.keys[k.key] = flags.String(k.flag, "", k.help)
	}
	flags.StringArrayVar(&f.labels, "label", nil, "label of this replica for the jobs' only_on, NAME=VALUE; may be repeated")
	flags.Lookup("behind-proxy").NoOptDefVal = "true"
	return cmd
}

type serveKey struct{ key, flag, help string }

func serveKeys() []serveKey {
	return []serveKey{
		{"listen", "listen", "address of the HTTP listener, host:port or unix:PATH (default 127.0.0.1:8420)"},
		{"auth", "auth", "none lets everybody in who can reach the listener; tokens is the default"},
		{"auth.token_file", "token-file", "where the generated admin token is kept (default cronlatch.token beside the configuration)"},
		{"tls.cert", "tls-cert", "file with the listener's certificate and its chain, PEM"},
		{"tls.key", "tls-key", "file with the certificate's private key, PEM"},
		{"behind_proxy", "behind-proxy", "a proxy in front of the listener ends TLS"},
		{"capacity", "capacity", "how many runs at a time"},
		{"drain_timeout", "drain-timeout", "what running jobs get at the end before they are stopped"},
		{"lock.ttl", "lock-ttl", "how long a lock lives without renewal"},
		{"log.level", "log-level", "debug, info, warn or error"},
		{"log.format", "log-format", "console, json, or auto: console on a terminal"},
	}
}

// given are the flags that were given.
func (f *serveFlags) given() map[string]string {
	given := map[string]string{"labels": strings.Join(f.labels, ",")}
	for key, value := range f.keys {
		given[key] = *value
	}
	return given
}

func (a *app) serve(ctx context.Context, f *serveFlags) error {
	signals, stop := hangups()
	defer stop()
	path, _ := a.configPath()
	load := func() (*configs.Config, error) { return a.loadFileWith(path, f.given()) }
	config, err := load()
	if err != nil {
		return err
	}
	target, err := a.targetOf(config)
	if err != nil {
		return err
	}
	log, err := a.logger(config.Log)
	if err != nil {
		return err
	}
	replica, err := a.replicaName(f.replica)
	if err != nil {
		return err
	}
	watch, err := f.watch.watching(a.Getenv)
	if err != nil {
		return err
	}
	// The audit is data: on stdout it can be piped and kept apart from the log.
	d, err := daemon.New(daemon.Options{
		Config: config, Target: target, Replica: replica, Version: buildVersion().Version, Dir: config.Dir, Getenv: a.Getenv,
		Log: log, Audit: audit.New(zapSink(a.Stdout)),
		Login: a.sayLogin, Started: a.sayStarted, Reload: load, Watch: watch,
	})
	if exposed, ok := errors.AsType[*daemon.ExposedError](err); ok {
		return fail(exitConfig, "%w", exposed).withHint("%s", exposed.Remedy)
	}
	if err != nil {
		return err
	}
	a.sayStarting(config, target, replica)
	defer survivePipes()()
	return a.untilTheEnd(ctx, d, signals)
}

// untilTheEnd runs the daemon, passes on the requests to reload, and says what each request to end does.
func (a *app) untilTheEnd(ctx context.Context, d *daemon.Daemon, reloads <-chan os.Signal) error {
	over := make(chan struct{})
	var wg sync.WaitGroup
	defer wg.Wait()
	defer close(over)
	wg.Go(func() { reloadOn(reloads, over, d) })
	wg.Go(func() {
		select {
		case <-ctx.Done():
			a.say("leaving: running jobs may finish within drain_timeout; once more to stop them now")
		case <-over:
			return
		}
		select {
		case <-a.Hurry:
			a.say("stopping running jobs now")
			d.Hurry()
		case <-over:
		}
	})
	return d.Run(ctx)
}

func (a *app) sayStarting(config *configs.Config, target database.Target, replica string) {
	a.say("replica %s with %s of %s", replica, counted(len(config.Jobs), "job"), config.Path)
	a.say("the state is in %s", target)
	if config.Auth.None && !strings.HasPrefix(config.Listen, "unix:") {
		a.say("warning: auth: none lets every user of this machine take, release and force locks")
	}
	if os.Geteuid() == 0 {
		a.say("warning: this daemon runs as root, and so do its jobs")
	}
}

func (a *app) sayStarted(url string, weaknesses []string) {
	for _, w := range weaknesses {
		a.say("weaker here: %s", w)
	}
	a.say("ready at %s", url)
}

// sayLogin says how to get in. This is the one place where a token is shown, and only when it was just made; the log and the
// audit never see it.
func (a *app) sayLogin(l daemon.Login) {
	const another = "`cronlatch token create NAME --role admin` makes one"
	switch {
	case l.Err != nil:
		a.say("no admin token was made: %v", l.Err)
		a.say("%s, or --token-file names a place that can be written", another)
	case l.State == auth.AdminCreated:
		a.say("the admin token, shown this once and kept in %s: %s", l.Path, l.Token)
	case l.State == auth.AdminHere:
		a.say("log in with the token in %s", l.Path)
	case l.State == auth.AdminElsewhere:
		a.say("the admin token is kept by the replica or host that was first; %s", another)
	case l.State == auth.AdminRevoked:
		a.say("the generated admin token is revoked; %s", another)
	}
	if l.Loose {
		a.say("warning: others on this machine can read %s", l.Path)
	}
}

// replicaName is the name for people; it must not be able to forge a line anywhere.
func (a *app) replicaName(flag string) (string, error) {
	for _, name := range []string{flag, a.Getenv("CRONLATCH_REPLICA")} {
		if name != "" {
			return checkReplica(name)
		}
	}
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("asking for the host's name: %w", err)
	}
	return checkReplica(host)
}

// checkReplica holds replica names to the rule of all names.
func checkReplica(name string) (string, error) {
	if err := locking.ValidateResource(name); err != nil {
		return "", usage("--replica %q: %w", name, err)
	}
	return name, nil
}
