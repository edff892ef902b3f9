package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/cronlatch/cronlatch/configs"
	"github.com/cronlatch/cronlatch/internal/database"
)

const defaultConfig = "cronlatch.yaml"

// configPath is the configuration file, and whether the user named it.
func (a *app) configPath() (path string, named bool) {
	if a.global.config != "" {
		return a.path(a.global.config), true
	}
	if env := a.Getenv("CRONLATCH_CONFIG"); env != "" {
		return a.path(env), true
	}
	return a.path(defaultConfig), false
}

// loadConfig reads the configuration; without a file it says how to get one.
func (a *app) loadConfig() (*configs.Config, error) {
	path, _ := a.configPath()
	return a.loadFile(path)
}

func (a *app) loadFile(path string) (*configs.Config, error) { return a.loadFileWith(path, nil) }

// loadFileWith lays flags over the file, by key.
func (a *app) loadFileWith(path string, flags map[string]string) (*configs.Config, error) {
	if err := missingFile(path); err != nil {
		return nil, err
	}
	config, err := configs.Load(path, configs.Options{Getenv: a.Getenv, Flags: flags})
	if err != nil {
		return nil, &failure{code: configCode(err), err: err}
	}
	return config, nil
}

// checkFile reads a configuration as loadFile does, and warns.
func (a *app) checkFile(path string) (*configs.Config, *configs.Errors, error) {
	if err := missingFile(path); err != nil {
		return nil, nil, err
	}
	config, warnings, err := configs.Check(path, configs.Options{Getenv: a.Getenv, Unprivileged: os.Geteuid() != 0}, a.Now())
	if err != nil {
		return nil, nil, &failure{code: configCode(err), err: err}
	}
	return config, warnings, nil
}

// missingFile says how to get a configuration when there is none.
func missingFile(path string) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fail(exitConfig, "there is no configuration file %s", path).
		withHint("`cronlatch init` writes one; --config or CRONLATCH_CONFIG names another")
}

// target finds the database for commands that need nothing else of the configuration: with a flag or DATABASE_URL
// the file is not even read, so that they still work when it is broken.
func (a *app) target() (database.Target, error) {
	path, named := a.configPath()
	if a.global.databaseURL != "" || a.Getenv("DATABASE_URL") != "" {
		return a.resolve("", filepath.Dir(path))
	}
	if _, err := os.Stat(path); err != nil && !named && a.Getenv("PGHOST") != "" {
		return a.resolve("", filepath.Dir(path))
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) && !named {
		// Not cronlatch.db of this folder: two folders would be two databases, and each lock in them free.
		return database.Target{}, fail(exitConfig, "nothing says where the database is: there is no configuration file %s", path).
			withHint("DATABASE_URL or --database-url names a database (postgres://... or sqlite:PATH), --config a configuration; `cronlatch init` writes one")
	}
	config, err := a.loadFile(path)
	if broken, ok := errors.AsType[*failure](err); ok && broken.code == exitConfig && broken.hint == "" {
		return database.Target{}, broken.withHint("only the database is asked of the file here: --database-url or DATABASE_URL names it, --server or CRONLATCH_SERVER a daemon")
	}
	if err != nil {
		return database.Target{}, err
	}
	return a.targetOf(config)
}

func (a *app) targetOf(c *configs.Config) (database.Target, error) {
	return a.resolve(c.Database.URL, c.Dir)
}

func (a *app) resolve(fileURL, dir string) (database.Target, error) {
	target, err := database.Resolve(a.global.databaseURL, fileURL, a.Getenv, dir)
	if err != nil {
		return database.Target{}, &failure{code: exitConfig, err: err}
	}
	return target, nil
}

// configCode is exitUsage when nothing but flags is wrong.
func configCode(err error) int {
	problems, ok := errors.AsType[*configs.Errors](err)
	if !ok {
		return exitConfig
	}
	for _, p := range problems.Problems {
		if !strings.HasPrefix(p.File, "--") {
			return exitConfig
		}
	}
	return exitUsage
}
