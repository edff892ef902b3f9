package importer

import (
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/cronlatch/cronlatch/jobs"
)

// Layout says whether the lines of a crontab have a column for users.
type Layout int

// The layouts of a crontab.
const (
	LayoutDetect Layout = iota // by the name of the file, else by what is in it
	LayoutUser
	LayoutSystem
)

// CrontabOptions is what a crontab does not say itself.
type CrontabOptions struct {
	Timezone string // of cron's host; "" is not known, and UTC is written
	Layout   Layout
}

// Crontabs makes one configuration of one or more crontabs.
func Crontabs(sources []Source, o CrontabOptions) Result {
	f := &file{timezone: o.Timezone}
	if f.timezone == "" {
		f.timezone = "UTC"
	}
	var problems []Problem
	taken := names{}
	for _, source := range sources {
		r := &crontabReader{file: f, source: source, names: taken, zone: f.timezone}
		r.read(o.Layout)
		problems = append(problems, r.problems...)
	}
	f.head = crontabHead(sources, o, f.jobs())
	result := f.result()
	result.Problems = problems
	return result
}

// crontabReader turns the lines of one crontab into jobs. Settings hold for the lines below them.
type crontabReader struct {
	file     *file
	source   Source
	names    names
	problems []Problem
	system   bool

	env       []variable
	shell     string
	zone      string        // of the file, or the last CRON_TZ
	badZone   int           // the line of a CRON_TZ that is no zone; 0 is none
	delay     time.Duration // RANDOM_DELAY
	delayText string
}

func (r *crontabReader) read(layout Layout) {
	if len(r.source.Data) > MaxBytes {
		r.problems = append(r.problems, refuse(r.source, 1, "the file has more than %d bytes (1 MiB); is it a crontab?", MaxBytes))
		return
	}
	lines := readCrontab(r.source.Data)
	r.system = layout == LayoutSystem ||
		layout == LayoutDetect && (namesSystemCrontab(r.source.Name) || looksLikeSystemCrontab(lines))
	for _, line := range lines {
		switch {
		case line.fault != "":
			r.refuse(line, line.fault)
		case line.setting != nil:
			r.set(line)
		case line.entry != nil:
			r.entry(line)
		}
	}
}

func (r *crontabReader) refuse(line crontabLine, message string) {
	p := refuse(r.source, line.number, "%s", message)
	r.problems = append(r.problems, p)
	r.file.refused(p, line.text)
}

func (r *crontabReader) note(line crontabLine, format string, args ...any) {
	r.file.note(refuse(r.source, line.number, "").where(), format, args...)
}

// set takes a line NAME=value.
func (r *crontabReader) set(line crontabLine) {
	v := *line.setting
	switch v.name {
	case "MAILTO", "MAILFROM", "CONTENT_TYPE", "CONTENT_TRANSFER_ENCODING":
		r.note(line, "%s is not used: nothing is mailed. What should happen after a failure is on_failure of a job.", line.text)
		return
	case "LOGNAME":
		r.note(line, "%s is not used: user says who a job runs as, and no variable changes that.", line.text)
		return
	case "CRON_TZ":
		r.setZone(line, v.value)
		return
	case "RANDOM_DELAY":
		r.setDelay(line, v.value)
		return
	case "SHELL":
		r.shell = v.value
	case "TZ":
		r.note(line, "TZ is for the commands below, as in cron. Schedules are in the zone of timezone.")
	case "HOME":
		r.note(line, "cron starts the commands below in %s; here they start in the folder of this file, and HOME is a variable only.", v.value)
	}
	if strings.HasPrefix(v.name, "CRONLATCH_") {
		r.refuse(line, "every run gets its own variables CRONLATCH_*, so that this one cannot be set")
		return
	}
	if strings.Contains(v.value, "$") {
		r.note(line, "the dollar in %s stands for itself, as in cron, which replaces no variables here.", v.name)
	}
	r.env = slices.DeleteFunc(slices.Clone(r.env), func(old variable) bool { return old.name == v.name })
	if v.name != "SHELL" || v.value != defaultShell && v.value != "" {
		r.env = append(r.env, v)
	}
}

const defaultShell = "/bin/sh"

func (r *crontabReader) setZone(line crontabLine, zone string) {
	if _, err := jobs.LoadZone(zone); err != nil {
		r.badZone = line.number
		r.refuse(line, err.Error())
		return
	}
	r.note(line, "CRON_TZ is timezone of the jobs below, as in cronie; other crons, Debian's among them, take no notice of it.")
	r.zone, r.badZone = zone, 0
}

func (r *crontabReader) setDelay(line crontabLine, minutes string) {
	n, err := strconv.Atoi(minutes)
	if err != nil || n < 0 || n > 24*60 {
		r.refuse(line, "RANDOM_DELAY is a number of minutes, at most a day of them")
		return
	}
	r.note(line, "RANDOM_DELAY is jitter of the jobs below: their name and the instant decide how long it is, not chance.")
	r.delay, r.delayText = time.Duration(n)*time.Minute, minutes
}

// cronWork is what an entry runs, and what there may be to say about it.
type cronWork struct {
	user           string
	command, stdin string
	percent        bool // there was a \%
	flags          string
}

// work takes an entry apart; fault is why it cannot become a job.
func (r *crontabReader) work(e *crontabEntry) (w cronWork, fault string) {
	rest := e.rest
	w.user = spoolUser(r.source.Name)
	if r.system {
		w.user, rest = e.splitUser()
		if !cronUser.MatchString(w.user) {
			return w, quote(w.user) + " is not a user; lines of /etc/crontab and cron.d have one before the command" +
				" (--system=false says that this file has none)"
		}
	}
	w.percent = strings.Contains(rest, `\%`)
	rest, w.flags = cronFlags(rest)
	w.command, w.stdin = splitPercent(rest)
	w.command = strings.TrimRightFunc(w.command, unicode.IsSpace)
	switch {
	case w.command == "" && r.system:
		fault = "there is no command behind the user " + quote(w.user) + " (--system=false says that this file has no column for users)"
	case w.command == "":
		fault = "there is no command"
	case e.fields[0] == "@reboot":
		fault = "@reboot is the start of one host, and no time that all replicas know; let the host start it (a systemd unit)"
	case r.badZone > 0:
		fault = "its zone is not known: CRON_TZ in line " + strconv.Itoa(r.badZone) + " is none"
	default:
		fault = accountFault(w.user)
	}
	return w, fault
}

// entry makes a job of a line.
func (r *crontabReader) entry(line crontabLine) {
	w, fault := r.work(line.entry)
	if fault != "" {
		r.refuse(line, fault)
		return
	}
	when := readCronSchedule(line.entry.fields)
	name := r.names.take(commandNames(w.command))
	schedule, err := jobs.ParseSchedule(when.text, jobs.ScheduleOptions{Timezone: r.zone, Job: name, DayMatch: dayMatch(when)})
	if err != nil {
		delete(r.names, name)
		r.refuse(line, err.Error())
		return
	}
	j := &job{name: name, from: refuse(r.source, line.number, "").where(), comments: line.above, notes: when.notes, env: r.env}
	j.set("schedule", quote(when.text))
	if when.all {
		j.set("day_match", string(jobs.DayMatchAll))
	}
	if r.zone != r.file.timezone {
		j.set("timezone", quote(r.zone))
	}
	r.jitter(j, schedule)
	j.runs(r.shell, withStdin(w.command, w.stdin))
	j.runsAs(w.user)
	j.explain(w)
	r.file.add(j)
}

func dayMatch(s cronSchedule) jobs.DayMatch {
	if s.all {
		return jobs.DayMatchAll
	}
	return jobs.DayMatchAny
}

// jitter is RANDOM_DELAY, which here may not let a run overtake the one before it.
func (r *crontabReader) jitter(j *job, schedule *jobs.Schedule) {
	if r.delay == 0 {
		return
	}
	delay := r.delay
	if shortest := schedule.ShortestInterval(); shortest > 0 && shortest < delay {
		delay = shortest
		j.note("RANDOM_DELAY=%s is longer than the time between two runs, and was cut", r.delayText)
	}
	j.set("jitter", shortDuration(delay))
}

// shortDuration is Go's form without its zeros.
func shortDuration(d time.Duration) string {
	text := strings.TrimSuffix(d.String(), "m0s")
	if text != d.String() {
		text += "m"
	}
	if short, ok := strings.CutSuffix(text, "h0m"); ok {
		return short + "h"
	}
	return text
}

// runs is the command, by /bin/sh unless the crontab has another SHELL.
func (j *job) runs(shell, text string) {
	if shell == "" || shell == defaultShell {
		j.set("run", script(text))
		return
	}
	j.set("command", list([]string{literalBraces(shell), "-c", literalBraces(text)}))
}

func (j *job) explain(w cronWork) {
	if w.stdin != "" {
		j.note("what followed %% is the standard input of the command, and stands in a here-document")
	}
	if w.percent {
		j.note(`\%% of a crontab is a plain %% here`)
	}
	if w.flags != "" {
		j.note("the flags -%s in front of the command were for cron, and are left out", w.flags)
	}
	if slices.ContainsFunc(simpleCommands(w.command), func(words []string) bool { return base(words[0]) == "sudo" }) {
		j.note("sudo and other set-uid programs do not work in a job; user runs it as another account")
	}
	if first, _, _ := strings.Cut(w.command, " "); strings.Trim(first, "0123456789*/,-?") == "" {
		j.note("the command begins with %s: a field too much? cron has five, and no seconds", first)
	}
	if strings.HasSuffix(w.command, `\`) {
		j.note(`cron does not join lines: the \ at the end stands for itself, and what follows is a line of its own`)
	}
	if strings.HasSuffix(w.command, "&") && !strings.HasSuffix(w.command, "&&") {
		j.note("what the command leaves in the background is ended when it ends")
	}
}

func crontabHead(sources []Source, o CrontabOptions, all []*job) []string {
	var from []string
	for _, s := range sources {
		from = append(from, s.Name)
	}
	zone := "- Schedules are in " + o.Timezone + ", as on the host of cron. timezone changes that."
	if o.Timezone == "" {
		zone = "- Schedules are in UTC, because the zone of cron's host is not known. Put that into timezone."
	}
	return []string{
		"Made by `cronlatch import crontab` from " + strings.Join(from, ", ") + ". `cronlatch validate` shows when each job runs next.",
		"Where a line means another thing here than in cron, a note says so. For all jobs:",
		"- A job runs on one of all replicas, not on the host of the crontab. What must stay on a host wants only_on.",
		crontabAccounts(all),
		zone,
		"- A run is skipped while the one before it is unfinished; cron starts it beside the other (overlap: allow).",
		"- An instant at which no replica was there is made up for within an hour; cron forgets it (catch_up: {policy: none}).",
		"",
	}
}
