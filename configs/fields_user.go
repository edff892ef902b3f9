package configs

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/cronlatch/cronlatch/jobs"
)

// accountFields are the keys of a job about the process that it is, and what is kept of it.
func accountFields() []field[jobDraft] {
	return []field[jobDraft]{
		{
			key: "params", doc: "What a run that is asked for may be given, by name: `" + paramsShape + "`. A command gets each as CRONLATCH_PARAM_NAME, and {{ .Params.NAME }} is replaced.",
			bind: func(d *jobDraft) sink { return paramMap{&d.params} },
		},
		{
			key: "secrets", doc: "Environment variables of the process that are not shown anywhere: `" + secretsShape + "`. Where its output has one of them, *** is kept in its place.",
			bind: func(d *jobDraft) sink { return secretMap{&d.secrets} },
		},
		{
			key: "user", shared: true, doc: "The account that the command runs as, with its groups: a name, a number, or two as in `1000:1000`. The daemon must be root. Nothing in it is replaced.",
			bind: func(d *jobDraft) sink { return account{&d.user} },
		},
		{
			key: "allow_root", initial: "false", doc: "true: `user` may be root.",
			bind: func(d *jobDraft) sink { return boolean{&d.allowRoot} },
		},
		{
			key: "history", doc: "How many of its runs are kept, in place of what `history` at the top says: `" + historyShape + "`.",
			bind: func(d *jobDraft) sink { return group[jobs.History]{historyFields(false), &d.history, historyShape} },
		},
	}
}

// account is a sink for the name or the number of an account.
type account struct{ into *string }

const (
	accountPattern = `^([A-Za-z_][A-Za-z0-9_.-]{0,30}[A-Za-z0-9_.$-]?|[0-9]{1,10}(:[0-9]{1,10})?)$`
	maxAccount     = 1<<32 - 2 // the highest number means nobody
)

var accountForm = regexp.MustCompile(accountPattern)

func (s account) read(r *reader, n *node, name string) {
	if n.kind != kindText && n.kind != kindInteger {
		r.refuse(n, codeType, "%s must be the name or the number of an account, not %s", name, n.describe())
		return
	}
	if !accountForm.MatchString(n.text) {
		r.refuse(n, codeUser, `%s must be the name of an account, its number, or the numbers of user and group such as "1000:1000", not %s`, name, shown(n))
		return
	}
	for part := range strings.SplitSeq(n.text, ":") {
		if number, err := strconv.ParseUint(part, 10, 64); err == nil && (number > maxAccount || len(part) > 1 && part[0] == '0') {
			r.refuse(n, codeUser, "%s: %s is not the number of an account; it is from 0 to %d, without a zero in front", name, part, uint32(maxAccount))
			return
		}
	}
	*s.into = n.text
}

// account checks who a command runs as. A hook is its job's in this.
func (r *reader) account(d *jobDraft) {
	name, _, _ := strings.Cut(d.user, ":")
	if d.chain.hookOf != nil || d.allowRoot || name != "root" && name != "0" {
		return
	}
	n := d.at["user"]
	if n == nil {
		n = d.key // defaults say it
	}
	r.refuse(n, codeUser, "%s would run as root; write allow_root: true beside it if that is meant, or take another user", d.title())
}

func (account) schema() *schema {
	least, most := 0, maxAccount
	return &schema{AnyOf: []*schema{patternSchema(accountPattern), {Type: "integer", Minimum: &least, Maximum: &most}}}
}
