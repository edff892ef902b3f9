package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cronlatch/cronlatch/configs"
	"github.com/cronlatch/cronlatch/internal/auth"
)

// token is what the client shows to the server.
func (a *app) token(s *server) (string, error) {
	if token := a.Getenv("CRONLATCH_TOKEN"); token != "" {
		if _, ok := auth.ID(token); !ok {
			return "", usage("CRONLATCH_TOKEN is not a token: cl_, an id, _ and a secret")
		}
		return token, nil
	}
	if !local(s.URL) {
		return "", nil
	}
	token, err := auth.ReadFile(a.tokenFile())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil // the server says whether it wants one
	case err != nil:
		return "", fail(exitDenied, "reading the token: %w", err).withHint("CRONLATCH_TOKEN goes before the file")
	default:
		return token, nil
	}
}

// tokenFile is where a daemon with the same surroundings keeps its token. A configuration that cannot be read does not
// stop a client: then it is the usual place.
func (a *app) tokenFile() string {
	path, _ := a.configPath()
	if file := a.Getenv("CRONLATCH_TOKEN_FILE"); file != "" {
		return beside(path, file)
	}
	if _, err := os.Stat(path); err == nil {
		if config, err := a.loadFile(path); err == nil {
			return beside(path, config.Auth.TokenFile)
		}
	}
	return beside(path, configs.DefaultTokenFile)
}

func beside(config, file string) string {
	if filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(filepath.Dir(config), file)
}
