package main

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/cronlatch/cronlatch/internal/daemon"
	"github.com/cronlatch/cronlatch/internal/doctor"
	"github.com/cronlatch/cronlatch/internal/output"
	"github.com/cronlatch/cronlatch/internal/supervisor"
)

func (a *app) doctorCommand() *cobra.Command {
	var format output.Format
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look at the database, this host and the fleet, and say what to do",
		Long: "doctor looks at what cronlatch stands on: the configuration, the way to the database, its role, schema, clock and\n" +
			"durability, the replicas, the listener, and the limits of this host. Each line is ok, warn or fail, with what to do.\n" +
			"It writes nothing. It exits with 1 when something fails, and with 69 when the database cannot be reached.",
		Example: "  $ cronlatch doctor\n  $ cronlatch doctor -o json --database-url postgres://cronlatch@db/cronlatch",
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.doctor(cmd.Context(), format) },
	}
	addOutput(cmd, &format, output.Table, output.JSON, output.NDJSON, output.YAML)
	return cmd
}

func (a *app) doctor(ctx context.Context, format output.Format) error {
	p := &doctor.Patient{Patience: a.Patience, Root: os.Geteuid() == 0, Supervisor: a.trySupervisor, Configuration: a.examinedConfiguration()}
	p.Target, p.TargetErr = a.target()
	p.Probe = func(ctx context.Context) (string, error, string, bool, error) {
		return a.probeListener(ctx, &p.Configuration)
	}
	result := doctor.Examine(ctx, p)
	if err := output.Write(a.answer(format), output.List[doctor.Finding]{Items: result.Findings, Columns: findingColumns()}); err != nil {
		return err
	}
	switch {
	case result.Unreachable:
		return exit(exitUnavailable)
	case doctor.Worst(result.Findings) == doctor.Fail:
		return exit(exitFailure)
	default:
		return nil
	}
}

func findingColumns() []output.Column[doctor.Finding] {
	return []output.Column[doctor.Finding]{
		{Title: "RESULT", Cell: func(f doctor.Finding) string { return string(f.Level) }, Tone: func(f doctor.Finding) output.Tone {
			switch f.Level {
			case doctor.OK:
				return output.Good
			case doctor.Warn:
				return output.Warn
			case doctor.Fail:
				return output.Bad
			default:
				return output.Plain
			}
		}},
		{Title: "CHECK", Cell: func(f doctor.Finding) string { return f.Check }},
		{Title: "FOUND", Cell: func(f doctor.Finding) string {
			if f.Remedy == "" {
				return f.Found
			}
			return f.Found + " -> " + f.Remedy // in one cell: most lines have nothing to do
		}},
	}
}

// examinedConfiguration is what `validate` would say, in short.
func (a *app) examinedConfiguration() doctor.Configuration {
	path, _ := a.configPath()
	c := doctor.Configuration{Path: path}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		c.Missing = true
		return c
	}
	config, warnings, err := a.checkFile(path)
	c.Config, c.Err = config, err
	if warnings != nil {
		c.Warnings = len(warnings.Problems)
	}
	return c
}

// trySupervisor starts what runs commands, as the daemon does, and ends it again.
func (*app) trySupervisor() (weaknesses []string, err error) {
	s, err := supervisor.Start(supervisor.Options{Logger: zap.NewNop(), Name: "doctor"})
	if err != nil {
		return nil, err
	}
	return s.Weaknesses(), s.Close()
}

// probeListener asks whether a daemon answers at the address of the configuration, or else whether one could.
func (a *app) probeListener(ctx context.Context, c *doctor.Configuration) (address string, exposed error, remedy string, answering bool, taken error) {
	address = defaultListen
	if listen, _, err := a.ownListener(); err == nil {
		address = listen
	}
	if c.Config != nil {
		if e, ok := errors.AsType[*daemon.ExposedError](daemon.CheckExposure(c.Config)); ok {
			return address, e, e.Remedy, false, nil
		}
	}
	if s, err := a.ownServer(""); err == nil {
		defer s.Client.CloseIdleConnections()
		if a.isCronlatch(ctx, s) {
			return address, nil, "", true, nil
		}
	}
	if strings.HasPrefix(address, "unix:") {
		return address, nil, "", false, nil // one that is left over is replaced
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return address, nil, "", false, err
	}
	return address, nil, "", false, l.Close()
}

// isCronlatch reports whether a daemon is alive there, ready or not.
func (a *app) isCronlatch(ctx context.Context, s *server) bool {
	ctx, cancel := context.WithTimeout(ctx, a.Patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL.JoinPath("/healthz").String(), http.NoBody)
	if err != nil {
		return false
	}
	response, err := s.Client.Do(request)
	if err != nil {
		return false
	}
	defer func() { _ = response.Body.Close() }()
	return response.StatusCode == http.StatusOK
}
