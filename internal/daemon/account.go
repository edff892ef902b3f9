package daemon

import (
	"fmt"
	"os/user"
	"strconv"
	"strings"

	"go.uber.org/zap"

	"github.com/cronlatch/cronlatch/internal/supervisor"
	"github.com/cronlatch/cronlatch/jobs"
)

// identity is who a command runs as; the zero value is who the daemon is.
type identity struct {
	account *supervisor.Account
	home    string
	name    string // "" for a number that no account has
}

// identityOf looks the account of a job up, with each start: accounts come and go without a reload. euid is the daemon's.
// The error is the end of a sentence with the way out.
func identityOf(j *jobs.Job, euid int) (identity, error) {
	if j.User == "" {
		return identity{}, nil
	}
	if euid != 0 {
		return identity{}, fmt.Errorf("user: %s needs a daemon that is root, and this one is the account %d; run it as root, or remove user from the job", j.User, euid)
	}
	i, err := lookUpAccount(j.User)
	switch {
	case err != nil:
		return identity{}, err
	case i.account.UID == 0 && !j.AllowRoot: // another name of root, which nobody could see in the file
		return identity{}, fmt.Errorf("user: %s is root on this host; write allow_root: true beside it if that is meant", j.User)
	}
	return i, nil
}

func lookUpAccount(text string) (identity, error) {
	if uid, gid, pair := strings.Cut(text, ":"); pair {
		a, err := accountOf(uid, gid, nil)
		return identity{account: a, home: "/"}, err
	}
	find := user.Lookup
	if _, err := strconv.Atoi(text); err == nil {
		find = user.LookupId
	}
	u, err := find(text)
	if err != nil {
		return identity{}, fmt.Errorf("user: there is no account %s on this host (%w); add it, or write the numbers of user and group, such as \"1000:1000\"", text, err)
	}
	groups, err := u.GroupIds()
	if err != nil {
		return identity{}, fmt.Errorf("user: the groups of %s cannot be read: %w", text, err)
	}
	a, err := accountOf(u.Uid, u.Gid, groups)
	return identity{account: a, home: u.HomeDir, name: u.Username}, err
}

func accountOf(uid, gid string, groups []string) (*supervisor.Account, error) {
	numbers := make([]int, 0, len(groups)+2)
	for _, text := range append([]string{uid, gid}, groups...) {
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("user: %q is not the number of an account or a group", text)
		}
		numbers = append(numbers, int(n))
	}
	return &supervisor.Account{UID: numbers[0], GID: numbers[1], Groups: numbers[2:]}, nil
}

// getenv is the daemon's environment as the account sees it: with its own home and name.
func (i identity) getenv(inherited func(string) string) func(string) string {
	if i.account == nil {
		return inherited
	}
	own := map[string]string{"HOME": i.home, "USER": i.name, "LOGNAME": i.name, "SHELL": ""}
	return func(name string) string {
		if value, ok := own[name]; ok {
			return value
		}
		return inherited(name)
	}
}

// warnOfRoot says once which commands would be root only because the daemon is.
func (d *Daemon) warnOfRoot(euid int) {
	if euid != 0 {
		return
	}
	var names []string
	for _, j := range d.o.Config.Jobs {
		if j.User == "" && j.HTTP == nil && j.SQL == nil {
			names = append(names, j.Name)
		}
	}
	if len(names) == 0 {
		return
	}
	const shown = 10
	d.o.Log.Warn("this daemon is root, and so are the commands of jobs without user; give them one, or run the daemon as another account",
		zap.Int("jobs", len(names)), zap.Strings("names", names[:min(shown, len(names))]))
}
