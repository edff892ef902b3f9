package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/cronlatch/cronlatch/configs"
	"github.com/cronlatch/cronlatch/internal/importer"
	"github.com/cronlatch/cronlatch/internal/output"
	"github.com/cronlatch/cronlatch/jobs"
)

func (a *app) importCommand() *cobra.Command {
	return groupCommand("import", "Print a configuration made of crontabs or Kubernetes CronJobs",
		"  $ cronlatch import crontab /etc/crontab > cronlatch.yaml", a.importCrontabCommand(), a.importCronJobCommand())
}

func (a *app) importCrontabCommand() *cobra.Command {
	var system bool
	var timezone string
	cmd := &cobra.Command{
		Use:   "crontab FILE...",
		Short: "Print a configuration made of crontabs; - is standard input",
		Long: "import crontab prints a configuration on stdout, with notes where it means another thing than the crontab. Lines that\n" +
			"cannot become a job, such as @reboot, are comments in it and messages on stderr. It exits with 1 when no line could.\n" +
			"Whether lines have a user before the command is seen by the file's name (/etc/crontab, cron.d), or by what is in it.",
		Example: "  $ cronlatch import crontab /etc/crontab /etc/cron.d/php > cronlatch.yaml\n" +
			"  $ cronlatch import crontab --timezone Europe/Berlin my-crontab > cronlatch.yaml",
		Args: someArgs("the path of a crontab, or - for standard input"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o := importer.CrontabOptions{Timezone: timezone}
			switch {
			case !cmd.Flags().Changed("system"):
			case system:
				o.Layout = importer.LayoutSystem
			default:
				o.Layout = importer.LayoutUser
			}
			return a.importCrontabs(args, o)
		},
	}
	cmd.Flags().BoolVar(&system, "system", false, "lines have a user before the command; --system=false: they have none")
	cmd.Flags().StringVar(&timezone, "timezone", "", "IANA zone of the schedules (default that of this machine)")
	return cmd
}

func (a *app) importCronJobCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "cronjob FILE...",
		Short: "Print a configuration made of Kubernetes CronJobs; - is standard input",
		Long: "import cronjob prints a configuration on stdout, with notes where it means another thing than the manifest. It reads\n" +
			"several documents and lists, and passes over everything that is no CronJob. It exits with 1 when it found none to import.",
		Example: "  $ cronlatch import cronjob deploy/backup.yaml > cronlatch.yaml",
		Args:    someArgs("the path of a manifest, or - for standard input"),
		RunE: func(_ *cobra.Command, args []string) error {
			sources, err := a.importSources(args)
			if err != nil {
				return err
			}
			return a.showImported(sources, importer.CronJobs(sources))
		},
	}
}

func (a *app) importCrontabs(args []string, o importer.CrontabOptions) error {
	if o.Timezone == "" {
		if o.Timezone = hostZone(a.Getenv, os.Readlink); o.Timezone == "" {
			a.say("the zone of this machine is not known, and UTC is written; --timezone says which one it is")
		}
	} else if _, err := jobs.LoadZone(o.Timezone); err != nil {
		return usage("--timezone: %w", err)
	}
	sources, err := a.importSources(args)
	if err != nil {
		return err
	}
	return a.showImported(sources, importer.Crontabs(sources, o))
}

// hostZone is the zone that cron has on this machine; "" when it is not known by a name.
func hostZone(getenv func(string) string, readlink func(string) (string, error)) string {
	zone := strings.TrimPrefix(getenv("TZ"), ":")
	if zone == "" {
		target, err := readlink("/etc/localtime")
		if err != nil {
			return ""
		}
		_, zone, _ = strings.Cut(target, "zoneinfo/")
	}
	if _, err := jobs.LoadZone(zone); err != nil {
		return ""
	}
	return zone
}

// importSources reads the files, and a little more than the largest that is imported.
func (a *app) importSources(args []string) ([]importer.Source, error) {
	sources := make([]importer.Source, 0, len(args))
	stdin := false
	for _, arg := range args {
		if arg == "-" && stdin {
			return nil, usage("- stands for standard input, which can be read once only")
		}
		name, read := arg, a.readImport
		if arg == "-" {
			stdin, name = true, "stdin"
			read = func(string) ([]byte, error) { return io.ReadAll(io.LimitReader(a.Stdin, importer.MaxBytes+1)) }
		}
		data, err := read(arg)
		if err != nil {
			return nil, fmt.Errorf("read what to import: %w", err)
		}
		sources = append(sources, importer.Source{Name: name, Data: data})
	}
	return sources, nil
}

func (a *app) readImport(name string) ([]byte, error) {
	f, err := os.Open(a.path(name))
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, importer.MaxBytes+1))
	return data, errors.Join(err, f.Close())
}

// showImported prints what was made, when it loads.
func (a *app) showImported(sources []importer.Source, result importer.Result) error {
	for _, p := range result.Problems {
		_, _ = fmt.Fprintln(a.Stderr, output.Clean(p.String()))
	}
	if _, err := configs.Parse("cronlatch.yaml", []byte(result.YAML), configs.Options{}); err != nil {
		return fmt.Errorf("what was made of it is no valid configuration, and is not printed: %w", notProblems(err))
	}
	if _, err := io.WriteString(a.Stdout, result.YAML); err != nil {
		return fmt.Errorf("write the configuration: %w", err)
	}
	return a.countImported(sources, result)
}

// notProblems is the first problem of a configuration as an ordinary error: the file that it is in was never written.
func notProblems(err error) error {
	if problems, ok := errors.AsType[*configs.Errors](err); ok {
		return errors.New(problems.Problems[0].Message)
	}
	return err
}

func (a *app) countImported(sources []importer.Source, result importer.Result) error {
	names := make([]string, len(sources))
	for i, s := range sources {
		names[i] = s.Name
	}
	from := strings.Join(names, ", ")
	if result.Skipped > 0 {
		a.say("passed over %s of another kind", counted(result.Skipped, "manifest"))
	}
	if result.Jobs == 0 {
		return fail(exitFailure, "nothing could be imported from %s", from)
	}
	rest := ""
	if n := len(result.Problems); n > 0 {
		rest = fmt.Sprintf("; not imported: %d, see above", n)
	}
	a.say("imported %s from %s, with %s%s", counted(result.Jobs, "job"), from, counted(result.Notes, "note"), rest)
	return nil
}
