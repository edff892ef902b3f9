package output

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// IsTerminal reports whether w is a terminal. A pipe, a regular file and /dev/null are not.
func IsTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	_, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ) // the one terminal ioctl with one name on Linux and macOS
	return err == nil
}

// ColorMode is when to use color.
type ColorMode string

// The modes.
const (
	ColorAuto   ColorMode = "auto" // on a terminal, unless NO_COLOR is set or TERM is dumb (https://no-color.org)
	ColorAlways ColorMode = "always"
	ColorNever  ColorMode = "never"
)

// Enabled decides for a writer that is a terminal or not.
func (m ColorMode) Enabled(terminal bool, getenv func(string) string) bool {
	switch m {
	case ColorAlways:
		return true
	case ColorNever:
		return false
	case ColorAuto:
	}
	return getenv("NO_COLOR") == "" && getenv("TERM") != "dumb" && terminal
}
