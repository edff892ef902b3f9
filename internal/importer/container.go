package importer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// work is what the first container runs.
func (c *cronJob) work() *refusal {
	path := []string{"spec", "jobTemplate", "spec", "template", "spec", "containers"}
	containers := c.value.list(path...)
	if len(containers) == 0 {
		return &refusal{c.value.at(path...), "CronJob " + quote(c.value.word("metadata", "name")) + " has no container"}
	}
	first := containers[0]
	env, why := c.environment(first)
	if why != nil {
		return why
	}
	c.job.env = env
	argv := append(first.texts("command"), first.texts("args")...)
	for i, arg := range argv {
		if strings.ContainsRune(arg, 0) || !utf8.ValidString(arg) {
			return &refusal{first.line, "the command holds something that is not text (a NUL, or not UTF-8)"}
		}
		argv[i] = literalBraces(expandReferences(arg, env))
		for _, name := range c.left {
			if strings.Contains(argv[i], "$("+name+")") {
				c.job.note("Kubernetes replaces $(%s) in the command, and nothing does so here", name)
			}
		}
	}
	c.command(first, argv)
	c.surroundings(first, containers)
	return nil
}

// command of the job. What is in the image only cannot be known: the job is then off until somebody writes it.
func (c *cronJob) command(first *value, argv []string) {
	image := first.word("image")
	if len(first.texts("command")) > 0 && first.texts("command")[0] != "" {
		c.job.set("command", list(argv))
		c.job.note("in Kubernetes the command runs in the image %s; it must be on the hosts of the replicas", cmp.Or(image, "of its container"))
		return
	}
	c.job.note("the command is the entry point of the image %s, which the manifest does not say: write it here, and remove enabled", image)
	if c.spec.word("suspend") != "true" {
		c.job.set("enabled", "false")
	}
	c.job.set("command", list(append([]string{"/entrypoint/of/" + literalBraces(image)}, argv...)))
}

// environment reads env. A value that is somewhere in the cluster becomes a note.
func (c *cronJob) environment(first *value) ([]variable, *refusal) {
	var env []variable
	for _, item := range first.list("env") {
		v := variable{item.word("name"), item.word("value")}
		switch {
		case v.name == "" || strings.ContainsAny(v.name, "=\x00") || strings.ContainsRune(v.value, 0) || !utf8.ValidString(v.name+v.value):
			return nil, &refusal{item.line, "env has an item whose name or value no process can be given"}
		case strings.HasPrefix(v.name, "CRONLATCH_"):
			c.job.note("env %s is left out: every run gets its own variables CRONLATCH_*", v.name)
			continue
		case item.has("valueFrom"):
			key := "env"
			if item.get("valueFrom").has("secretKeyRef") {
				key = "secrets"
			}
			c.job.note("env %s is left out: it comes from %s. Give it in %s, with ${%s} or ${file:PATH}.", v.name, originOf(item.get("valueFrom")), key, v.name)
			c.left = append(c.left, v.name)
			continue
		}
		v.value = expandReferences(v.value, env)
		env = slices.DeleteFunc(env, func(old variable) bool { return old.name == v.name })
		env = append(env, v)
	}
	for _, item := range first.list("envFrom") {
		c.job.note("all variables of %s are left out: write those that the command needs into env", originOf(item))
	}
	return env, nil
}

// originOf is where the cluster has a value: "secret db, key password".
func originOf(v *value) string {
	for _, kind := range []struct{ key, word string }{
		{"secretKeyRef", "secret"},
		{"configMapKeyRef", "config map"},
		{"secretRef", "secret"},
		{"configMapRef", "config map"},
	} {
		if from := v.get(kind.key); from != nil {
			text := kind.word + " " + from.word("name")
			if key := from.word("key"); key != "" {
				text += ", key " + key
			}
			return text
		}
	}
	if field := v.word("fieldRef", "fieldPath"); field != "" {
		return "the pod's field " + field
	}
	return "the cluster"
}

// surroundings are notes about what a pod has and a job has not.
func (c *cronJob) surroundings(first *value, containers []*value) {
	if len(containers) > 1 {
		c.job.note("only the first of %d containers, %s, is imported", len(containers), first.word("name"))
	}
	for _, init := range c.pod.list("initContainers") {
		c.job.note("the init container %s runs first in Kubernetes; make it a job, and let this one come after it", init.word("name"))
	}
	if dir := first.word("workingDir"); dir != "" {
		c.job.note("it runs in %s in Kubernetes, and in the folder of this file here", dir)
	}
	var volumes []string
	for _, volume := range c.pod.list("volumes") {
		volumes = append(volumes, volume.word("name"))
	}
	if len(volumes) > 0 {
		c.job.note("it has volumes in Kubernetes: %s", strings.Join(volumes, ", "))
	}
	if account := c.pod.word("serviceAccountName"); account != "" {
		c.job.note("it has the service account %s in Kubernetes", account)
	}
	c.account(first)
	if c.pod.has("nodeSelector") {
		c.job.note("nodeSelector chooses nodes; here labels of replicas and only_on do that")
	}
	for _, key := range []string{"completions", "parallelism"} {
		if n := c.template.word(key); n != "" && n != "1" {
			c.job.note("%s: %s means nothing here: a job is one process", key, n)
		}
	}
	if c.template.has("podFailurePolicy") {
		c.job.note("podFailurePolicy is left out; exit_codes says what exit codes mean")
	}
}

// account notes who the container is. A number in an image may be anybody on a host, so that user is not written.
func (c *cronJob) account(first *value) {
	const uid, gid = "runAsUser", "runAsGroup"
	of := func(key string) string {
		return cmp.Or(first.word("securityContext", key), c.pod.word("securityContext", key))
	}
	var parts []string
	if id := of(uid); id != "" {
		parts = append(parts, "user "+id)
	}
	if id := of(gid); id != "" {
		parts = append(parts, "group "+id)
	}
	if len(parts) > 0 {
		c.job.note("it runs as %s in Kubernetes; user makes it an account of the hosts, for which the daemon must be root", strings.Join(parts, " and "))
	}
}

// expandReferences replaces $(NAME) by variables of the container, as Kubernetes does: $$ is one dollar, and a name that
// is not known stays as it is.
func expandReferences(text string, env []variable) string {
	var b strings.Builder
	for i := 0; i < len(text); {
		rest := text[i:]
		switch {
		case strings.HasPrefix(rest, "$$"):
			b.WriteByte('$')
			i += 2
		case strings.HasPrefix(rest, "$(") && strings.Contains(rest, ")"):
			end := strings.IndexByte(rest, ')')
			b.WriteString(valueOf(rest[2:end], env))
			i += end + 1
		default:
			b.WriteByte(text[i])
			i++
		}
	}
	return b.String()
}

func valueOf(name string, env []variable) string {
	for _, v := range env {
		if v.name == name {
			return v.value
		}
	}
	return fmt.Sprintf("$(%s)", name)
}
