package importer

import (
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// accountName is what the key user takes for a name. Digits alone would be a number there, and are a name in cron.
var accountName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]{0,30}[A-Za-z0-9_.$-]?$`)

// spool has the folders in which crons keep the crontabs of users, each under the name of its user.
var spool = regexp.MustCompile(`(^|/)(var/spool/cron(/crontabs|/tabs)?|var/cron/tabs|usr/lib/cron/tabs|etc/crontabs)$`)

// spoolUser is the user whose crontab a file of a spool is; "" for other files.
func spoolUser(file string) string {
	folder, name := path.Split(filepath.ToSlash(file))
	if !spool.MatchString(strings.TrimSuffix(folder, "/")) || !accountName.MatchString(name) {
		return ""
	}
	return name
}

// cronAccount is a column for users: FreeBSD allows a group and a login class behind the name.
type cronAccount struct{ name, group, class string }

func readAccount(column string) cronAccount {
	var a cronAccount
	column, a.class, _ = strings.Cut(column, "/")
	a.name, a.group, _ = strings.Cut(column, ":")
	return a
}

// runsAs writes the account of a line. One that cannot be written is a fault: as another account, a command does another
// thing, and as the daemon's may do more than it should.
func (j *job) runsAs(column string) {
	if column == "" {
		return
	}
	a := readAccount(column)
	j.from += ", as " + column
	j.set("user", quote(a.name))
	if a.name == "root" {
		j.set("allow_root", "true")
	}
	if a.group != "" {
		j.note("the group %s is left out: a command has all groups of its account here, its own one first", a.group)
	}
	if a.class != "" {
		j.note("the login class %s is left out", a.class)
	}
}

// accountFault is why the account of a line cannot be written as user; "" when it can, or there is none.
func accountFault(column string) string {
	if column == "" || accountName.MatchString(readAccount(column).name) {
		return ""
	}
	return quote(column) + " is not a name that the key user takes: a letter or _ first, at most 32 characters;" +
		" write the job by hand, with the number of the account"
}

// crontabAccounts says who the jobs run as, and where. Beside jobs with a user, for which the daemon is root, those without
// one are root, too.
func crontabAccounts(all []*job) string {
	withUser := func(j *job) bool { return j.has("user") }
	if !slices.ContainsFunc(all, withUser) {
		return "- It runs as the account of the daemon and in the folder of this file; cron took the user and the home folder of the crontab."
	}
	for _, j := range all {
		if !withUser(j) {
			j.note("nothing says whose crontab this was; without user it runs as the daemon, which is root for other jobs of this file")
		}
	}
	return "- It runs as its user, for which the daemon must be root; where the daemon's own account will do, remove user and allow_root." +
		" It starts in the folder of this file; cron starts it in the user's home folder."
}

func (j *job) has(name string) bool {
	return slices.ContainsFunc(j.keys, func(k key) bool { return k.name == name })
}
