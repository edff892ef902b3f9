//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/cronlatch/cronlatch/internal/database/dbtest"
)

// pty is a terminal: what a person types goes into it, and what programs print comes out.
type pty struct {
	master *os.File
	slave  *os.File
	screen shared
	done   chan struct{}
}

func openPTY(t *testing.T) *pty {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Skip("this machine has no pseudo terminals: ", err)
	}
	master := os.NewFile(uintptr(fd), "terminal") // not blocking, so that Close ends a Read
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	require.NoError(t, err)
	require.NoError(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	slave, err := os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0)
	require.NoError(t, err)
	p := &pty{master: master, slave: slave, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf)
			_, _ = p.screen.Write(buf[:n])
			if err != nil { // EIO when nobody has the other side open
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = slave.Close()
		_ = master.Close() // hangs up on whoever is left
		<-p.done
	})
	return p
}

func (p *pty) types(t *testing.T, text string) {
	t.Helper()
	_, err := p.master.WriteString(text)
	require.NoError(t, err)
}

func (p *pty) shows(t *testing.T, text string) {
	t.Helper()
	lockUntil(t, "the screen shows "+text, func() bool { return strings.Contains(p.screen.String(), text) })
}

// login starts a shell script as a session leader on the terminal, with $CRONLATCH in it. A shell without job control stays
// in the foreground itself; it prints the foreground group when cronlatch has ended.
func (r *lockRig) login(t *testing.T, p *pty, script string) *lockProcess {
	t.Helper()
	leader := r.command(t)
	leader.cmd.Env = append(leader.cmd.Env, "CRONLATCH="+leader.cmd.Path)
	leader.cmd.Path, leader.cmd.Args = "/bin/sh", []string{"sh", "-c", script}
	leader.cmd.Stdin, leader.cmd.Stdout, leader.cmd.Stderr = p.slave, p.slave, p.slave
	leader.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	return leader.start(t)
}

const foreground = `ps -o tpgid= -p $$ | tr -d ' '`

// The command has the terminal while it runs: it can read from it and from /dev/tty, is the foreground group, cannot be
// suspended and gets Ctrl-C; afterwards the caller has it back.
func TestLockOnATerminal(t *testing.T) {
	t.Parallel()
	rig := newLockRig(t, dbtest.SQLiteURL(t))
	require.NoError(t, os.WriteFile(filepath.Join(rig.dir, "command"), []byte(noting+`
		read line; echo "got:$line"; read line < /dev/tty; echo "then:$line"
		[ "$(`+foreground+`)" = $$ ] && echo in-the-foreground
		trap 'echo interrupted; exit 7' INT; note ready; while :; do sleep 0.01; done`), 0o600))
	terminal := openPTY(t)
	leader := rig.login(t, terminal, `"$CRONLATCH" lock a -- sh command; echo "code:$?"; [ "$(`+foreground+`)" = $$ ] && echo taken-back`)
	terminal.types(t, "one\n")
	terminal.shows(t, "got:one")
	terminal.types(t, "two\n")
	terminal.shows(t, "then:two")
	terminal.shows(t, "in-the-foreground")
	rig.noted(t, "ready")
	terminal.types(t, "\x1a") // Ctrl-Z has no effect, and the next key is heard
	terminal.types(t, "\x03") // Ctrl-C
	terminal.shows(t, "interrupted")
	terminal.shows(t, "code:7")
	terminal.shows(t, "taken-back")
	assert.Zero(t, leader.end(t))
}

// In a pipeline the others keep the terminal until the command wants to read from it, and Ctrl-C reaches it all the same.
func TestLockInAPipelineOnATerminal(t *testing.T) {
	t.Parallel()
	rig := newLockRig(t, dbtest.SQLiteURL(t))
	require.NoError(t, os.WriteFile(filepath.Join(rig.dir, "command"), []byte(noting+`
		[ "$(`+foreground+`)" = $$ ] || echo in-the-background
		read line < /dev/tty; echo "got:$line"
		trap 'echo interrupted; exit 7' INT; note ready; while :; do sleep 0.01; done`), 0o600))
	terminal := openPTY(t)
	leader := rig.login(t, terminal, `trap : INT; { "$CRONLATCH" lock a -- sh command; echo "code:$?"; } | cat`)
	terminal.types(t, "one\n")
	terminal.shows(t, "in-the-background")
	terminal.shows(t, "got:one")
	rig.noted(t, "ready")
	terminal.types(t, "\x03")
	terminal.shows(t, "interrupted")
	terminal.shows(t, "code:7")
	leader.end(t)
}

// A message never stops us, although the terminal stops what writes to it from the background.
func TestLockWritesToATerminalThatStopsOthers(t *testing.T) {
	t.Parallel()
	rig := newLockRig(t, dbtest.SQLiteURL(t))
	terminal := openPTY(t)
	rig.login(t, terminal, `stty tostop; "$CRONLATCH" lock a --ttl `+lostTTL+` -- sh -c '`+noting+`note ready; while :; do sleep 0.01; done'; echo "code:$?"`)
	rig.noted(t, "ready")
	rig.force(t, "a")
	terminal.shows(t, `the lock "a" is lost`)
	terminal.shows(t, "code:76")
}

// A person is asked before a lock is taken away.
func TestForceAsks(t *testing.T) {
	t.Parallel()
	rig := newLockRig(t, dbtest.SQLiteURL(t))
	rig.take(t, "a", time.Hour)
	for _, c := range [][2]string{{"no", "1"}, {"", "1"}, {"yes", "0"}} {
		answer, code := c[0], c[1]
		terminal := openPTY(t)
		leader := rig.login(t, terminal, `"$CRONLATCH" locks release a --force --reason gone; echo "code:$?"`)
		terminal.shows(t, "take it away from its holder? Type yes to go on:")
		terminal.types(t, answer+"\n")
		leader.end(t)
		terminal.shows(t, "code:"+code)
	}
}
