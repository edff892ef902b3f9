package importer

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/cronlatch/cronlatch/jobs"
)

// CronJobs makes one configuration of the CronJobs in one or more files of manifests. What is of another kind is
// counted and passed over.
func CronJobs(sources []Source) Result {
	f := &file{head: cronJobHead(sources), timezone: "UTC"}
	r := &cronJobReader{file: f, names: names{}}
	for _, source := range sources {
		r.source = source
		documents, problem := readManifests(source)
		if problem != nil {
			r.problems = append(r.problems, *problem)
			f.refused(*problem, "")
			continue
		}
		for _, document := range documents {
			r.manifest(document, 0)
		}
	}
	result := f.result()
	result.Problems, result.Skipped = r.problems, r.skipped
	return result
}

type cronJobReader struct {
	file     *file
	names    names
	source   Source
	problems []Problem
	skipped  int
}

var kubernetesName = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$`)

// refusal is why a CronJob was not imported.
type refusal struct {
	line    int
	message string
}

// manifest takes a CronJob, or a list of whatever there is.
func (r *cronJobReader) manifest(v *value, depth int) {
	const deepest = 4 // lists of lists
	switch kind := v.word("kind"); {
	case strings.HasSuffix(kind, "List") && depth < deepest:
		for _, item := range v.list("items") {
			r.manifest(item, depth+1)
		}
	case kind == "CronJob":
		j, why := r.cronJob(v)
		if why != nil {
			p := refuse(r.source, why.line, "%s", why.message)
			r.problems = append(r.problems, p)
			r.file.refused(p, "")
			return
		}
		r.file.add(j)
	default:
		r.skipped++
	}
}

func (r *cronJobReader) cronJob(v *value) (*job, *refusal) {
	name, namespace := v.word("metadata", "name"), v.word("metadata", "namespace")
	for key, text := range map[string]string{"name": name, "namespace": cmp.Or(namespace, "default")} {
		if !kubernetesName.MatchString(text) {
			return nil, &refusal{v.at("metadata", key), "metadata." + key + " is not a name in Kubernetes: " + quote(text)}
		}
	}
	c := &cronJob{value: v, spec: v.get("spec"), template: v.get("spec", "jobTemplate", "spec")}
	c.pod = c.template.get("template", "spec")
	if c.spec == nil {
		return nil, &refusal{v.line, "CronJob " + quote(name) + " has no spec"}
	}
	c.job.from = refuse(r.source, v.line, "").where() + ", CronJob " + name
	if namespace != "" {
		c.job.from += " in " + namespace
	}
	candidates := []string{name}
	if namespace != "" {
		candidates = append(candidates, namespace+":"+name)
	}
	c.job.name = r.names.take(candidates)
	for _, step := range []func() *refusal{c.schedule, c.overlap, c.deadline, c.suspend, c.work, c.limits, c.retry} {
		if why := step(); why != nil {
			delete(r.names, c.job.name)
			return nil, why
		}
	}
	return &c.job, nil
}

// cronJob is one CronJob on its way.
type cronJob struct {
	job      job
	value    *value
	spec     *value
	template *value   // of the Job
	pod      *value   // of the Job's template
	left     []string // variables that only the cluster knows
}

func (c *cronJob) schedule() *refusal {
	text, zone := c.spec.word("schedule"), c.spec.word("timeZone")
	line := c.value.at("spec", "schedule")
	if prefix, rest, found := strings.Cut(strings.TrimSpace(text), " "); found {
		for _, name := range []string{"TZ=", "CRON_TZ="} {
			if own, ok := strings.CutPrefix(prefix, name); ok && zone == "" {
				zone, text = own, strings.TrimSpace(rest)
			}
		}
	}
	if fields := strings.Fields(text); len(fields) == 5 {
		text = c.shortenSteps(fields)
	}
	if zone == "" {
		c.job.note("without timeZone Kubernetes takes the zone of its controller; it is UTC here")
		zone = "UTC"
	}
	if strings.HasPrefix(text, "@every") {
		c.job.note("@every counts from the epoch here, the same on all replicas; Kubernetes counts from the creation of the CronJob")
	}
	if _, err := jobs.ParseSchedule(text, jobs.ScheduleOptions{Timezone: zone, Job: c.job.name}); err != nil {
		return &refusal{line, err.Error()}
	}
	c.job.set("schedule", quote(text))
	if zone != "UTC" {
		c.job.set("timezone", quote(zone))
	}
	return nil
}

// shortenSteps writes */90 as what Kubernetes makes of it. It reads the day fields as cronlatch does, other than cron.
func (c *cronJob) shortenSteps(fields []string) string {
	rules := cronFields()
	var s cronSchedule
	for i, field := range fields {
		items := strings.Split(field, ",")
		for k, item := range items {
			items[k] = s.item(rules[i], toTheEnd(rules[i], item))
			if strings.Contains(items[k], "/") {
				items[k] = item
			}
		}
		fields[i] = strings.Join(items, ",")
	}
	c.job.notes = append(c.job.notes, s.notes...)
	return strings.Join(fields, " ")
}

// toTheEnd spells out that N/step runs to the end of the field.
func toTheEnd(rule cronField, item string) string {
	first, step, found := strings.Cut(item, "/")
	if !found || rule.value(first) < 0 {
		return item
	}
	return first + "-" + strconv.Itoa(rule.max) + "/" + step
}

func (c *cronJob) overlap() *refusal {
	switch policy := cmp.Or(c.spec.word("concurrencyPolicy"), "Allow"); policy {
	case "Allow":
		c.job.set("overlap", string(jobs.OverlapAllow))
	case "Forbid":
		c.job.set("overlap", string(jobs.OverlapSkip))
		c.job.note("Forbid: Kubernetes may start a skipped run later, when the one before it has ended; overlap: queue does that")
	case "Replace":
		c.job.set("overlap", string(jobs.OverlapReplace))
	default:
		return &refusal{c.value.at("spec", "concurrencyPolicy"), "concurrencyPolicy is Allow, Forbid or Replace, not " + quote(policy)}
	}
	return nil
}

// seconds reads a number of seconds; found is false when it is not there.
func (c *cronJob) seconds(path ...string) (n int64, found bool, why *refusal) {
	text := c.value.word(path...)
	if text == "" {
		return 0, false, nil
	}
	const longest = 100 * 365 * 24 * 3600
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > longest {
		return 0, false, &refusal{c.value.at(path...), path[len(path)-1] + " is a number of seconds, not " + quote(text)}
	}
	return n, true, nil
}

func inSeconds(n int64) string { return shortDuration(time.Duration(n) * time.Second) }

func (c *cronJob) deadline() *refusal {
	n, found, why := c.seconds("spec", "startingDeadlineSeconds")
	if why != nil || !found {
		return why
	}
	if n == 0 {
		c.job.note("startingDeadlineSeconds: 0 is one second here")
	}
	deadline := inSeconds(max(n, 1))
	c.job.set("start_deadline", deadline)
	c.job.set("catch_up", "{policy: latest, window: "+deadline+"}")
	return nil
}

func (c *cronJob) suspend() *refusal {
	switch text := cmp.Or(c.spec.word("suspend"), "false"); text {
	case "true":
		c.job.set("enabled", "false")
	case "false":
	default:
		return &refusal{c.value.at("spec", "suspend"), "suspend is true or false, not " + quote(text)}
	}
	return nil
}

// limits are how long a run may take, and to stop.
func (c *cronJob) limits() *refusal {
	job, hasJob, why := c.seconds("spec", "jobTemplate", "spec", "activeDeadlineSeconds")
	if why != nil {
		return why
	}
	pod, hasPod, why := c.seconds("spec", "jobTemplate", "spec", "template", "spec", "activeDeadlineSeconds")
	if why != nil {
		return why
	}
	limit := job
	if hasPod && (!hasJob || pod < job) {
		limit = pod
	}
	if limit > 0 {
		c.job.set("timeout", inSeconds(limit))
	}
	grace, found, why := c.seconds("spec", "jobTemplate", "spec", "template", "spec", "terminationGracePeriodSeconds")
	if why != nil || !found {
		return why
	}
	const most = 3600
	if grace > most {
		c.job.note("terminationGracePeriodSeconds: %d is an hour here, the longest kill_after", grace)
		grace = most
	}
	c.job.set("kill_after", inSeconds(grace))
	return nil
}

// retry: Kubernetes waits 10 s, 20 s, 40 s ... and at most six minutes before a pod is tried again, and tries what was
// lost with its node, too.
func (c *cronJob) retry() *refusal {
	const unset, most = 6, 99
	text := c.template.word("backoffLimit")
	limit, err := strconv.Atoi(cmp.Or(text, strconv.Itoa(unset)))
	switch {
	case err != nil || limit < 0:
		return &refusal{c.value.at("spec", "jobTemplate", "spec", "backoffLimit"), "backoffLimit is a number of retries, not " + quote(text)}
	case text == "":
		c.job.note("without backoffLimit Kubernetes tries 6 times more")
	case limit > most:
		c.job.note("backoffLimit: %d is 99 here, the most that there are", limit)
		limit = most
	}
	if limit == 0 {
		return nil
	}
	c.job.set("retry", "{attempts: "+strconv.Itoa(limit+1)+", delay: 10s, backoff: exponential, max_delay: 6m}")
	if c.template.has("activeDeadlineSeconds") {
		c.job.note("activeDeadlineSeconds is for all attempts together in Kubernetes, and for each one here")
	}
	c.job.set("on_lost", string(jobs.OnLostRetry))
	return nil
}

func cronJobHead(sources []Source) []string {
	var from []string
	for _, s := range sources {
		from = append(from, s.Name)
	}
	return []string{
		"Made by `cronlatch import cronjob` from " + strings.Join(from, ", ") + ". `cronlatch validate` shows when each job runs next.",
		"Where a key means another thing here than in Kubernetes, a note says so. For all jobs:",
		"- A command runs on a host of the replicas, not in its image: what it needs must be there, its files and its account as well.",
		"- It runs as the user of the daemon and in the folder of this file.",
		"- Without startingDeadlineSeconds a missed run is made up for within an hour; Kubernetes sets no limit (start_deadline, catch_up).",
		"- How many ended Jobs are kept (successfulJobsHistoryLimit and the like) means nothing here.",
		"",
	}
}
