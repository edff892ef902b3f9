package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/spf13/cobra"
)

func (a *app) healthCommand() *cobra.Command {
	var address, cacert string
	var live bool
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Ask a running daemon whether it is ready; for health checks of containers",
		Long: "health asks /readyz of the daemon, or /healthz with --live, and exits with 0 or 69. It needs no token. It asks\n" +
			"--server, else CRONLATCH_SERVER, else the address that the daemon listens on: CRONLATCH_LISTEN, or listen in the\n" +
			"file. With tls in the file it wants to see exactly the certificate that is there, unless --cacert says who signs.",
		Example: "  $ cronlatch health\n  $ cronlatch health --live --server http://127.0.0.1:8421\n  $ cronlatch health --server unix:/run/cronlatch.sock",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.healthServer(address, cacert)
			if err != nil {
				return err
			}
			defer s.Client.CloseIdleConnections()
			path := "/readyz"
			if live {
				path = "/healthz"
			}
			return a.askHealth(cmd.Context(), s, path)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&address, "server", "", "address of the daemon: http://, https:// or unix: (CRONLATCH_SERVER; default from the file)")
	flags.StringVar(&cacert, "cacert", "", "file with the roots that sign its certificate, PEM (CRONLATCH_CACERT; default the system's)")
	flags.BoolVar(&live, "live", false, "only whether the process answers, not whether it can work")
	return cmd
}

// healthServer is the daemon that is named, else the one that belongs to these surroundings.
func (a *app) healthServer(flag, cacert string) (*server, error) {
	for _, address := range []string{flag, a.Getenv("CRONLATCH_SERVER")} {
		if address != "" {
			return a.connect(address, cacert)
		}
	}
	return a.ownServer(cacert)
}

// answerLimit bounds what is read of an answer.
const answerLimit = 64 << 10

func (a *app) askHealth(ctx context.Context, s *server, path string) error {
	ctx, cancel := context.WithTimeout(ctx, a.Patience)
	defer cancel()
	address := s.at(path)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL.JoinPath(path).String(), http.NoBody)
	if err != nil {
		return usage("%q is not an address: %w", address, err)
	}
	response, err := s.Client.Do(request)
	if err != nil {
		return fail(exitUnavailable, "no answer from %s: %w", address, err).withHint("is `cronlatch serve` running?")
	}
	defer func() { _ = response.Body.Close() }()
	var answer struct{ Status, Code, Detail string }
	body := json.NewDecoder(io.LimitReader(response.Body, answerLimit))
	if response.StatusCode == http.StatusOK && body.Decode(&answer) == nil {
		_, err := fmt.Fprintln(a.Stdout, answer.Status)
		return err
	}
	_ = body.Decode(&answer) // without a problem the status says enough
	if answer.Detail == "" {
		return fail(exitUnavailable, "%s answered %s", address, response.Status)
	}
	return fail(exitUnavailable, "not ready: %s  [%s]", answer.Detail, answer.Code)
}
