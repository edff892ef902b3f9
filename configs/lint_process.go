package configs

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// plainSecrets warns of secrets in a file that is read by more people than they are for. An address alone is none.
func (l *linter) plainSecrets(nodes []*node) {
	for _, n := range nodes {
		l.warn(n, part{}, codePlainSecret, "a secret in the configuration itself, which is copied and committed; write ${file:...} or ${VAR} in its place")
	}
}

// account warns of what works only for root, when a daemon would probably not be.
func (l *linter) account(d *jobDraft) {
	if n := d.at["user"]; n != nil && l.unprivileged && d.chain.hookOf == nil {
		l.warn(n, part{}, codeNeedsRoot, "only a daemon that is root can run a command as another account; another one fails each start of %s", d.title())
	}
}

var paramToken = regexp.MustCompile(`\{\{\s*\.Params\.`)

// shellText warns of parameters that a shell would read as its own text. Behind that text they are safe: "$1".
func (l *linter) shellText(d *jobDraft) {
	if len(d.command) == 0 || !slices.Contains([]string{"sh", "bash", "dash", "ash", "zsh", "ksh"}, path.Base(d.command[0])) {
		return
	}
	at := slices.IndexFunc(d.command, func(arg string) bool { return strings.HasPrefix(arg, "-") && strings.HasSuffix(arg, "c") }) + 1
	if at == 0 || at == len(d.command) {
		return
	}
	if found := paramToken.FindStringIndex(d.command[at]); found != nil {
		l.warn(d.commandNodes[at], part{found[0], found[1] - found[0]}, codeInShell,
			"the shell reads a parameter in its text as commands; write \"$CRONLATCH_PARAM_NAME\" there in its place")
	}
}
