// Command withpg runs another command beside a private PostgreSQL server:
//
//	go run ./internal/pgserver/withpg -- go test ./...
//
// The command finds the server's address, for a superuser, in CRONLATCH_TEST_POSTGRES. When it ends, the server and its
// files are removed, and withpg exits with its code (128+n when signal n ended it). With -find in place of a command, withpg
// prints the folder of PostgreSQL's server programs, or says that there are none and exits with 1.
//
// With -bouncer, CRONLATCH_TEST_POSTGRES leads to PgBouncer in transaction mode in front of the server, and
// CRONLATCH_TEST_POSTGRES_DIRECT to the server itself, for what no pooler can do (CREATE DATABASE). -timezone, -datestyle
// and -isolation are defaults of the server that an installation may have.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/cronlatch/cronlatch/internal/pgserver"
)

const exitUsage = 64

func main() {
	code, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "withpg:", err)
	}
	os.Exit(code)
}

func run(args []string) (int, error) {
	flags := flag.NewFlagSet("withpg", flag.ContinueOnError)
	find := flags.Bool("find", false, "print the folder of PostgreSQL's server programs and exit; with -bouncer also the program pgbouncer")
	bouncer := flags.Bool("bouncer", false, "put PgBouncer in transaction mode in front of the server")
	var settings []pgserver.Option
	for flagName, name := range map[string]string{
		"timezone": "timezone", "datestyle": "datestyle", "isolation": "default_transaction_isolation",
	} {
		flags.Func(flagName, "default of the server's sessions for "+name, func(value string) error {
			settings = append(settings, pgserver.Setting(name, value))
			return nil
		})
	}
	if err := flags.Parse(args); err != nil {
		return exitUsage, nil //nolint:nilerr // the flag package has printed it
	}
	if *find {
		return printPrograms(context.Background(), *bouncer)
	}
	if flags.NArg() == 0 {
		return exitUsage, errors.New("no command given; try: withpg -- go test ./internal/database")
	}
	return beside(flags.Args(), *bouncer, settings)
}

func printPrograms(ctx context.Context, bouncer bool) (int, error) {
	dir, err := pgserver.Find(ctx)
	if err != nil {
		return 1, err
	}
	fmt.Println(dir)
	if !bouncer {
		return 0, nil
	}
	program, err := pgserver.FindBouncer()
	if err != nil {
		return 1, err
	}
	fmt.Println(program)
	return 0, nil
}

// beside runs the command while a server is up.
func beside(args []string, bouncer bool, settings []pgserver.Option) (code int, err error) {
	ctx := context.Background()
	err = pgserver.Run(ctx, func(s *pgserver.Server) error {
		template, err := s.Template(ctx)
		if err != nil {
			return err
		}
		env := append(os.Environ(), template)
		if !bouncer {
			code, err = command(ctx, args, append(env, "CRONLATCH_TEST_POSTGRES="+s.URL()))
			return err
		}
		return s.Pooled(ctx, func(b *pgserver.Bouncer) error {
			code, err = command(ctx, args, append(env, "CRONLATCH_TEST_POSTGRES="+b.URL(), "CRONLATCH_TEST_POSTGRES_DIRECT="+s.URL()))
			return err
		})
	}, settings...)
	if err != nil && code == 0 {
		code = 1
	}
	return code, err
}

// command runs args and passes the signals on that would end withpg before its command; a terminal's Ctrl-C reaches
// the command by itself.
func command(ctx context.Context, args, env []string) (int, error) {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Env = env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		return 127, fmt.Errorf("starting %s: %w", args[0], err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case s := <-signals:
			if s != os.Interrupt {
				_ = cmd.Process.Signal(s) // it may have ended in between
			}
		case err := <-ended:
			return exitCode(cmd.ProcessState), startErrorOnly(err)
		}
	}
}

func exitCode(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}

// startErrorOnly drops what the exit code says already.
func startErrorOnly(err error) error {
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return nil
	}
	return err
}
