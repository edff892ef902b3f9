package importer

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// cronJobWith is a manifest whose spec begins with the given lines; container is what the container has beside its image.
func cronJobWith(spec, jobSpec, container string) string {
	indent := func(text, by string) string {
		return strings.ReplaceAll(strings.TrimSpace("x: y\n"+text), "\n", "\n"+by)
	}
	return "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: a}\nspec:\n  " + indent(spec, "  ") +
		"\n  jobTemplate:\n    spec:\n      " + indent(jobSpec, "      ") +
		"\n      template:\n        spec:\n          containers:\n            - image: img\n              " + indent(container, "              ") + "\n"
}

func TestManifestsThatAreRefused(t *testing.T) {
	t.Parallel()
	const daily, run = `schedule: "0 0 * * *"`, "command: [run]"
	for text, want := range map[string]string{
		cronJobWith(daily, "", run):                                      "",
		cronJobWith("", "", run):                                         `m.yaml:5: there is no schedule in ""; write five: minute, hour, day of month, month, day of week, like "0 2 * * *"`,
		cronJobWith("schedule: 0 0 * *", "", run):                        `m.yaml:6: 4 fields in "0 0 * *"; write five: minute, hour, day of month, month, day of week, like "0 2 * * *"`,
		cronJobWith(daily+"\ntimeZone: Mars", "", run):                   `m.yaml:6: unknown time zone "Mars"; write an IANA name like Europe/Berlin, or UTC`,
		cronJobWith(daily+"\nsuspend: maybe", "", run):                   `m.yaml:7: suspend is true or false, not "maybe"`,
		cronJobWith(daily+"\nconcurrencyPolicy: allow", "", run):         `m.yaml:7: concurrencyPolicy is Allow, Forbid or Replace, not "allow"`,
		cronJobWith(daily+"\nstartingDeadlineSeconds: 5m", "", run):      `m.yaml:7: startingDeadlineSeconds is a number of seconds, not "5m"`,
		cronJobWith(daily, "backoffLimit: -1", run):                      `m.yaml:10: backoffLimit is a number of retries, not "-1"`,
		cronJobWith(daily, "activeDeadlineSeconds: 99999999999", run):    `m.yaml:10: activeDeadlineSeconds is a number of seconds, not "99999999999"`,
		cronJobWith(daily, "", run+"\nenv: [{value: x}]"):                `m.yaml:16: env has an item whose name or value no process can be given`,
		"kind: CronJob\nmetadata:\n  name: Big_Name\n":                   `m.yaml:3: metadata.name is not a name in Kubernetes: "Big_Name"`,
		"kind: CronJob\nmetadata: {name: a}\n":                           `m.yaml:1: CronJob "a" has no spec`,
		"kind: CronJob\nmetadata: {name: a}\nspec: {schedule: '@daily'}": `m.yaml:3: CronJob "a" has no container`,
		"kind: CronJob\nmetadata: {{ .Name }}\n  spec: [":                `; templates must be rendered first (helm template, kustomize build)`,
		"kind: [\n":                     `m.yaml:1: this is not YAML: sequence end token ']' not found`,
		"a: *b\n":                       `m.yaml:1: nothing above is marked &b, so *b repeats nothing`,
		"a: &b {c: d}\ne:\n  <<: *b\n":  `m.yaml:3: "<<" is not read; write the keys out, or apply the file and import what "kubectl get cronjob -o yaml" shows`,
		strings.Repeat("[", 100):        `m.yaml:1: nested deeper than 64 levels`,
		strings.Repeat("- ", 100):       `m.yaml:1: nested deeper than 64 levels`,
		strings.Repeat("#\n", MaxBytes): `m.yaml:1: the file has more than 1048576 bytes (1 MiB); split it`,
	} {
		result := CronJobs([]Source{{"m.yaml", []byte(text)}})
		loaded(t, result)
		text = text[:min(len(text), 400)]
		if want == "" {
			assert.Empty(t, result.Problems, text)
			assert.Equal(t, 1, result.Jobs, text)
			continue
		}
		require.Len(t, result.Problems, 1, text)
		assert.Contains(t, result.Problems[0].String(), want, text)
		assert.Zero(t, result.Jobs, text)
	}
}

// The cases are those of Kubernetes' own third_party/forked/golang/expansion.
func TestReferencesInCommands(t *testing.T) {
	t.Parallel()
	env := []variable{{"A", "1"}, {"B", "$(A)"}, {"E", ""}}
	for text, want := range map[string]string{
		"$(A)": "1", "___$(A)___": "___1___", "$(B)": "$(A)", "$(E)": "", "$$(A)": "$(A)", "$$$(A)": "$1", "$$$$(A)": "$$(A)",
		"$(X)": "$(X)", "$A": "$A", "$": "$", "$$": "$", "$(": "$(", "$(A": "$(A", "$)": "$)", "$(A)$(A)": "11", "f000-$($(A)--)": "f000-$($(A)--)",
		"$(date +%F)": "$(date +%F)",
	} {
		assert.Equal(t, want, expandReferences(text, env), text)
	}
}

// Kubernetes' schedules are those of robfig/cron, whose day fields differ from cron's.
func TestSchedulesOfKubernetes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"0 0 */2 * 1": "0 0 */2 * 1", "*/90 5-7/9 * * *": "0 5 * * *", "50/15 5/15 * * *": "50 5/15 * * *", "@hourly": "@hourly",
		"TZ=Asia/Tokyo 0 9 * * *": "0 9 * * *", "0 0 ? * mon-fri": "0 0 ? * mon-fri",
	} {
		result := CronJobs([]Source{{"m.yaml", []byte(cronJobWith("schedule: "+quote(text), "", "command: [x]"))}})
		require.Empty(t, result.Problems, text)
		job := loaded(t, result).Jobs[0]
		assert.Equal(t, want, job.Schedule.String(), text)
		assert.NotContains(t, result.YAML, "day_match", text)
	}
}

// The container's context goes before the pod's, and neither is dropped silently.
func TestTheAccountOfAContainerIsNoted(t *testing.T) {
	t.Parallel()
	const note = "note: it runs as "
	for container, want := range map[string]string{
		"securityContext: {runAsUser: 7, runAsGroup: 8}": note + "user 7 and group 8 in Kubernetes",
		"securityContext: {runAsUser: 0}":                note + "user 0 in Kubernetes",
		"securityContext: {runAsNonRoot: true}":          "",
	} {
		result := CronJobs([]Source{{"m.yaml", []byte(cronJobWith("schedule: '@daily'\ntimeZone: UTC", "backoffLimit: 0", "command: [x]\n"+container))}})
		assert.Empty(t, loaded(t, result).Jobs[0].User, container)
		assert.Equal(t, want != "", strings.Contains(result.YAML, note), container)
		assert.Contains(t, result.YAML, want)
	}
	pod := strings.Replace(cronJobWith("schedule: '@daily'", "", "command: [x]\nsecurityContext: {runAsGroup: 8}"),
		"          containers:", "          securityContext: {runAsUser: 9, runAsGroup: 9}\n          containers:", 1)
	assert.Contains(t, CronJobs([]Source{{"m.yaml", []byte(pod)}}).YAML, note+"user 9 and group 8 in")
}
