package pgserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// minMajor is the oldest PostgreSQL that cronlatch supports.
const minMajor = 14

// BinEnv names the environment variable with the folder of the server programs, for installations in unusual places.
const BinEnv = "CRONLATCH_TEST_PGBIN"

// ErrNoServer says that PostgreSQL's server programs are not installed where Find looks.
var ErrNoServer = errors.New("pgserver: no PostgreSQL server programs (initdb, postgres; version 14 or newer) found; " +
	"make test installs them on Debian and Ubuntu, elsewhere install PostgreSQL or set " + BinEnv + " to their folder")

// places are the folders of Debian, Red Hat, Homebrew (arm64, amd64), MacPorts, Postgres.app and source builds.
func places() []string {
	return []string{
		"/usr/lib/postgresql/*/bin",
		"/usr/pgsql-*/bin",
		"/opt/homebrew/opt/postgresql*/bin",
		"/usr/local/opt/postgresql*/bin",
		"/opt/local/lib/postgresql*/bin",
		"/Applications/Postgres.app/Contents/Versions/*/bin",
		"/usr/local/pgsql/bin",
	}
}

// Find returns the folder that holds initdb and postgres: the one named by CRONLATCH_TEST_PGBIN, else the newest version
// in PATH and the usual places. Without one of version 14 or newer the error is ErrNoServer.
func Find(ctx context.Context) (string, error) {
	if dir := os.Getenv(BinEnv); dir != "" {
		if _, err := majorVersion(ctx, dir); err != nil {
			return "", fmt.Errorf("using %s: %w", BinEnv, err)
		}
		return dir, nil
	}
	best, bestMajor := "", minMajor-1
	for _, dir := range candidates() {
		if major, err := majorVersion(ctx, dir); err == nil && major > bestMajor {
			best, bestMajor = dir, major
		}
	}
	if best == "" {
		return "", ErrNoServer
	}
	return best, nil
}

func candidates() []string {
	dirs := filepath.SplitList(os.Getenv("PATH"))
	for _, pattern := range places() {
		// The patterns are constants without a syntax error, the only error Glob knows.
		found, _ := filepath.Glob(pattern)
		dirs = append(dirs, found...)
	}
	return dirs
}

// majorVersion asks the postgres program in dir, which prints "postgres (PostgreSQL) 15.18 (Debian ...)".
func majorVersion(ctx context.Context, dir string) (int, error) {
	for _, name := range []string{"initdb", "postgres"} {
		if _, err := exec.LookPath(filepath.Join(dir, name)); err != nil {
			return 0, fmt.Errorf("looking for the server programs: %w", err)
		}
	}
	out, err := exec.CommandContext(ctx, filepath.Join(dir, "postgres"), "--version").Output()
	if err != nil {
		return 0, fmt.Errorf("asking postgres for its version: %w", err)
	}
	_, version, _ := strings.Cut(string(out), "(PostgreSQL) ")
	digits := strings.IndexFunc(version, func(r rune) bool { return r < '0' || r > '9' })
	if digits < 1 {
		return 0, fmt.Errorf("reading the version of postgres from %q", out)
	}
	return strconv.Atoi(version[:digits])
}
