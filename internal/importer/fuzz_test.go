package importer

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/configs"
)

// FuzzCrontab looks for panics, for texts that do not load, and for lines that are neither imported nor reported.
func FuzzCrontab(f *testing.F) {
	for _, name := range []string{"etc/crontab", "etc/cron.d/php", "etc/cron.d/raid-check", "user"} {
		f.Add(testdata(f, "crontab", name).Data, false)
		f.Add(testdata(f, "crontab", name).Data, true)
	}
	f.Fuzz(func(t *testing.T, data []byte, system bool) {
		o := CrontabOptions{Layout: LayoutUser}
		if system {
			o.Layout = LayoutSystem
		}
		result := Crontabs([]Source{{"fuzz", data}}, o)
		if len(data) > MaxBytes || len(result.YAML) > MaxBytes {
			return
		}
		loaded(t, result)
		reported := map[int]bool{}
		for _, p := range result.Problems {
			require.False(t, reported[p.Line], "line %d is reported twice", p.Line)
			reported[p.Line] = true
		}
		entries := 0
		for _, line := range readCrontab(data) {
			if line.fault != "" {
				require.True(t, reported[line.number], "line %d is faulty and not reported", line.number)
			}
			if line.entry != nil && !reported[line.number] {
				entries++
			}
		}
		require.Equal(t, entries, result.Jobs)
	})
}

// FuzzCronJobs looks for panics, and for texts that do not load.
func FuzzCronJobs(f *testing.F) {
	for _, name := range []string{"backup.yaml", "release.yaml", "list.yaml"} {
		f.Add(testdata(f, "cronjob", name).Data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		result := CronJobs([]Source{{"fuzz", data}})
		if len(result.YAML) > MaxBytes {
			return
		}
		config, err := configs.Parse("fuzz", []byte(result.YAML), configs.Options{})
		require.NoError(t, err, result.YAML)
		require.Len(t, config.Jobs, result.Jobs)
	})
}
