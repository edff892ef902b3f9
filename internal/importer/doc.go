// Package importer turns crontabs and Kubernetes CronJobs into the text of a configuration file.
//
// # Model
//
// A source is read into entries that keep their line (crontab.go, manifest.go), and each entry becomes a job or a
// Problem (crontab_job.go, cronjob.go). file.go writes the jobs, in the order of the source, with what the source said
// above them and a note wherever something means another thing here.
//
// Crontabs are read as Vixie cron and its descendants do (Debian, Red Hat, macOS, the BSDs). Where these differ among
// each other a note says so.
//
// # Guarantees
//
// Nothing is dropped silently: what cannot become a job is a Problem with its line and a comment in the text. The text
// loads: schedules and zones are checked with package jobs while they are read. The same source gives the same text,
// and appending to a source leaves the names of the jobs before it as they were. The package reads no file and no clock.
//
// # Not guaranteed
//
// That a job does the same thing here: it runs on another host and in another folder. The head of the
// text says so.
//
// # Tests
//
// testdata has crontabs and manifests and, beside each, the text that they give (go test ./internal/importer -update
// writes it anew: read the diff). Days are compared with a naive reading of cron's rule, and FuzzCrontab and FuzzCronJobs load whatever
// comes out.
package importer
