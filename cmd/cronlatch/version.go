package main

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/cronlatch/cronlatch/internal/output"
	"github.com/cronlatch/cronlatch/jobs"
)

// version is set by a release build: go build -ldflags "-X main.version=1.2.3". Otherwise the module's version is
// shown, as go install knows it.
var version string

type versionInfo struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Zones    string `json:"zones"` // release of the embedded time zone database
}

func buildVersion() versionInfo {
	v := versionInfo{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Zones: jobs.ZoneVersion}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if v.Version == "" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			v.Commit = s.Value
		}
	}
	return v
}

func (a *app) versionCommand() *cobra.Command {
	var format output.Format
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version of the program and of its zone data",
		Example: "  $ cronlatch version -o json",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			v := buildVersion()
			return output.WriteValue(a.answer(format), v, func() []string {
				lines := []string{"cronlatch " + v.Version, "built with " + v.Go + " for " + v.Platform, "time zones " + v.Zones}
				if v.Commit != "" {
					lines = append(lines, "commit "+v.Commit)
				}
				return lines
			})
		},
	}
	addOutput(cmd, &format, output.Table, output.JSON, output.NDJSON, output.YAML)
	return cmd
}
