package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/cronlatch/cronlatch/internal/output"
)

func (a *app) reloadCommand() *cobra.Command {
	var address, cacert string
	var format output.Format
	cmd := &cobra.Command{
		Use:   "reload",
		Short: "Let a running daemon read its configuration again",
		Long: "reload asks the daemon to replace its jobs by those of its configuration file, all or none, and says what changed. No\n" +
			"running job is waited for or stopped: it goes on as it was defined. A file with errors changes nothing (78, with\n" +
			"their positions), and so does one with keys that only a restart can change. SIGHUP and a change of the file do the\n" +
			"same. It asks --server, else CRONLATCH_SERVER, else the address that the daemon listens on, with an admin's token.",
		Example: "  $ cronlatch reload\n  $ cronlatch reload --server http://127.0.0.1:8421 -o json",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.healthServer(address, cacert)
			if err != nil {
				return err
			}
			defer s.Client.CloseIdleConnections()
			if s.Token, err = a.token(s); err != nil {
				return err
			}
			return a.reload(cmd.Context(), s, format)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&address, "server", "", "address of the daemon: http://, https:// or unix: (CRONLATCH_SERVER; default from the file)")
	flags.StringVar(&cacert, "cacert", "", "file with the roots that sign its certificate, PEM (CRONLATCH_CACERT; default the system's)")
	addOutput(cmd, &format, output.Table, output.JSON, output.YAML)
	return cmd
}

// reloadView is the API's answer.
type reloadView struct {
	Added       []string `json:"added"`
	Removed     []string `json:"removed"`
	Changed     []string `json:"changed"`
	Jobs        int      `json:"jobs"`
	Definitions string   `json:"definitions"`
}

// sentences tell a person what changed.
func (v *reloadView) sentences() []string {
	var lines []string
	for _, part := range []struct {
		word  string
		names []string
	}{{"added", v.Added}, {"removed", v.Removed}, {"changed", v.Changed}} {
		for _, name := range part.names {
			lines = append(lines, fmt.Sprintf("%-8s %s", part.word, name))
		}
	}
	if lines == nil {
		lines = []string{"nothing has changed"}
	}
	return lines
}

// reloadProblem is what the API answers when it does not reload.
type reloadProblem struct {
	Code   string `json:"code"`
	Detail string `json:"detail"`
	Errors []struct {
		Field   string `json:"field"`
		Line    int    `json:"line"`
		Column  int    `json:"column"`
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"errors"`
}

// reloadLimit bounds what is read of an answer: a report has 100 problems at most, but a file has any number of jobs.
const reloadLimit = 16 << 20

func (a *app) reload(ctx context.Context, s *server, format output.Format) error {
	ctx, cancel := context.WithTimeout(ctx, a.Patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL.JoinPath("/-/reload").String(), http.NoBody)
	if err != nil {
		return usage("%q is not an address: %w", s, err)
	}
	if s.Token != "" {
		request.Header.Set("Authorization", "Bearer "+s.Token)
	}
	response, err := s.Client.Do(request)
	if err != nil {
		return fail(exitUnavailable, "no answer from %s: %w", s.at("/-/reload"), err).withHint("is `cronlatch serve` running?")
	}
	defer func() { _ = response.Body.Close() }()
	body := json.NewDecoder(io.LimitReader(response.Body, reloadLimit))
	var v reloadView
	if response.StatusCode == http.StatusOK && body.Decode(&v) == nil {
		return output.WriteValue(a.answer(format), v, v.sentences)
	}
	var p reloadProblem
	_ = body.Decode(&p) // without a problem the status says enough
	return a.notReloaded(s, response, &p)
}

// notReloaded shows all problems and finds the exit code.
func (a *app) notReloaded(s *server, response *http.Response, p *reloadProblem) error {
	for _, e := range p.Errors {
		if e.Line > 0 {
			_, _ = fmt.Fprintln(a.Stderr, output.Clean(fmt.Sprintf("%s:%d:%d: %s  [%s]", e.Field, e.Line, e.Column, e.Message, e.Code)))
		} else {
			_, _ = fmt.Fprintln(a.Stderr, output.Clean(fmt.Sprintf("%s: %s  [%s]", e.Field, e.Message, e.Code)))
		}
	}
	where := s.at("/-/reload")
	switch response.StatusCode {
	case http.StatusUnprocessableEntity, http.StatusConflict:
		f := fail(exitConfig, "%s", p.Detail)
		if response.StatusCode == http.StatusUnprocessableEntity {
			return f.withHint("`cronlatch validate` beside the daemon's file shows the lines")
		}
		return f
	case http.StatusUnauthorized, http.StatusForbidden:
		return fail(exitDenied, "%s does not permit it: %s", where, p.Detail).
			withHint("it needs an admin's token in CRONLATCH_TOKEN; `cronlatch token create NAME --role admin` makes one")
	default:
		if p.Detail == "" {
			return fail(exitUnavailable, "%s answered %s", where, response.Status)
		}
		return fail(exitUnavailable, "not reloaded: %s  [%s]", p.Detail, p.Code)
	}
}
