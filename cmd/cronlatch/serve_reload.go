package main

import (
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/cronlatch/cronlatch/internal/daemon"
)

// watchFlag decides whether the daemon reloads by itself.
type watchFlag struct {
	cmd   *cobra.Command
	value bool
}

func (f *watchFlag) add(cmd *cobra.Command) {
	f.cmd = cmd
	cmd.Flags().BoolVar(&f.value, "watch", true, "reload when the configuration file changes (CRONLATCH_WATCH)")
}

// watching is the flag, else the variable.
func (f *watchFlag) watching(getenv func(string) string) (bool, error) {
	env := getenv("CRONLATCH_WATCH")
	if env == "" || f.cmd.Flags().Changed("watch") {
		return f.value, nil
	}
	on, err := strconv.ParseBool(env)
	if err != nil {
		return false, fail(exitConfig, "CRONLATCH_WATCH must be true or false, not %q", env)
	}
	return on, nil
}

// hangups are the SIGHUPs from now on. One that comes while another is not yet answered is answered with it.
func hangups() (signals <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGHUP)
	return c, func() { signal.Stop(c) }
}

// reloadOn reloads at each signal until over is closed. What came of it is in the log: nobody waits for an answer.
func reloadOn(signals <-chan os.Signal, over <-chan struct{}, d *daemon.Daemon) {
	for {
		select {
		case <-signals:
			_, _ = d.Reload(daemon.BySignal)
		case <-over:
			return
		}
	}
}
