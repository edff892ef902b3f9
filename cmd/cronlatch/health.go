package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

const defaultListen = "127.0.0.1:8420"

func (a *app) healthCommand() *cobra.Command {
	var server string
	var live bool
	cmd := &cobra.Command{
		Use:   "health",
		Short: "Ask a running daemon whether it is ready; for health checks of containers",
		Long: "health asks /readyz of the daemon, or /healthz with --live, and exits with 0 or 69. It asks --server, else\n" +
			"CRONLATCH_SERVER, else the address that the daemon listens on: CRONLATCH_LISTEN, or listen in the file.",
		Example: "  $ cronlatch health\n  $ cronlatch health --live --server http://127.0.0.1:8421",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			base, err := a.serverURL(server)
			if err != nil {
				return err
			}
			path := "/readyz"
			if live {
				path = "/healthz"
			}
			return a.askHealth(cmd.Context(), base.JoinPath(path).String())
		},
	}
	cmd.Flags().StringVar(&server, "server", "", "address of the daemon (CRONLATCH_SERVER; default from the file)")
	cmd.Flags().BoolVar(&live, "live", false, "only whether the process answers, not whether it can work")
	return cmd
}

// serverURL is where the daemon is.
func (a *app) serverURL(flag string) (*url.URL, error) {
	for _, given := range []string{flag, a.Getenv("CRONLATCH_SERVER")} {
		if given == "" {
			continue
		}
		if !strings.Contains(given, "://") {
			given = "http://" + given
		}
		u, err := url.Parse(given)
		if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
			return nil, usage("%q is not an address like http://127.0.0.1:8420", given)
		}
		return u, nil
	}
	listen, err := a.listenAddress()
	if err != nil {
		return nil, err
	}
	return &url.URL{Scheme: "http", Host: reachable(listen)}, nil
}

// listenAddress is what a daemon with the same surroundings listens on.
func (a *app) listenAddress() (string, error) {
	if listen := a.Getenv("CRONLATCH_LISTEN"); listen != "" {
		return listen, nil
	}
	path, named := a.configPath()
	if _, err := os.Stat(path); err != nil && !named {
		return defaultListen, nil
	}
	config, err := a.loadFile(path)
	if err != nil {
		return "", err
	}
	return config.Listen, nil
}

// reachable is an address to connect to for one to listen on: 0.0.0.0 and an empty host are every address.
func reachable(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return listen
	}
	if addr, err := netip.ParseAddr(host); host == "" || err == nil && addr.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// answerLimit bounds what is read of an answer.
const answerLimit = 64 << 10

func (a *app) askHealth(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, a.Patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return usage("%q is not an address: %w", address, err)
	}
	// No proxy: the daemon is on this machine, and HTTP_PROXY must not send the question elsewhere.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
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
