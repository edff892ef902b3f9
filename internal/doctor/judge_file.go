package doctor

import (
	"errors"
	"io/fs"
	"path/filepath"
)

// fileFacts are about the file of SQLite.
type fileFacts struct {
	Path      string
	Err       error // of looking at it
	NoFolder  bool
	Mode      fs.FileMode
	Access    error  // this user may not read and write it
	InFolder  error  // this user may not make files beside it
	Header    header // how it begins
	Network   string // the network file system it is on
	Overlay   bool   // it is in a container's own layer
	Memory    bool   // it is on a file system that the machine forgets
	FreeBytes uint64
	FreeErr   error
	Journal   string
	Version   string
}

// header is what the first bytes of a file say.
type header int

const (
	headerWAL      header = iota // a database with the journal that cronlatch wants
	headerRollback               // a database with another journal
	headerEmpty                  // no bytes at all
	headerForeign                // not a database
)

const (
	scarceBytes = 1 << 30
	fewBytes    = 64 << 20
)

func judgeFile(f *fileFacts) []Finding {
	place, ok := judgePlace(f)
	if ok {
		place = judgeKeeping(f)
	}
	all := []Finding{place}
	switch {
	case f.NoFolder: // no disk, either
	case f.FreeErr != nil:
		all = append(all, unknown("disk", f.FreeErr))
	case f.FreeBytes < fewBytes:
		all = append(all, bad("disk", "make room", "%d MiB are free for %s", f.FreeBytes>>20, f.Path))
	case f.FreeBytes < scarceBytes:
		all = append(all, warn("disk", "make room, or keep less history", "%d MiB are free for %s", f.FreeBytes>>20, f.Path))
	default:
		all = append(all, good("disk", "%d MiB are free", f.FreeBytes>>20))
	}
	return all
}

// judgePlace says why the file cannot be used; ok is that it can.
func judgePlace(f *fileFacts) (found Finding, ok bool) {
	const check, both = "file", "give this user the file and its folder"
	dir := filepath.Dir(f.Path)
	switch {
	case f.NoFolder:
		return bad(check, "make the folder, or correct the path in the URL", "the folder %s is not there", dir), false
	case f.Network != "":
		return bad(check, "use a local disk, or PostgreSQL", "%s is on %s, where SQLite's locks do not hold", f.Path, f.Network), false
	case f.Err != nil && !errors.Is(f.Err, fs.ErrNotExist):
		return bad(check, both, "%v", f.Err), false
	case f.Mode.IsDir():
		return bad(check, "name a file in it: sqlite:"+filepath.Join(f.Path, "cronlatch.db"), "%s is a folder", f.Path), false
	case !f.Mode.IsRegular():
		return bad(check, "name a regular file", "%s is not a regular file", f.Path), false
	case f.Access != nil:
		return bad(check, both, "this user may not read and write %s: %v", f.Path, f.Access), false
	case f.InFolder != nil:
		return bad(check, both, "this user may not make files in %s, where SQLite has its journal: %v", dir, f.InFolder), false
	case f.Header == headerForeign:
		return bad(check, "name another file, or restore a backup of this one", "%s is not a database of SQLite", f.Path), false
	default:
		return Finding{}, true
	}
}

// judgeKeeping says how well the file keeps what is in it.
func judgeKeeping(f *fileFacts) Finding {
	const check = "file"
	missing := errors.Is(f.Err, fs.ErrNotExist)
	switch {
	case f.Memory:
		return warn(check, "put it on a disk", "%s is in memory: the next boot begins without locks and history, and with fencing tokens from 1", f.Path)
	case f.Overlay:
		return warn(check, "put it on a volume", "%s is in a container's own layer: it goes away with the container", f.Path)
	case missing:
		return good(check, "%s is not there yet; the first command or daemon makes it", f.Path)
	case f.Mode.Perm()&0o077 != 0:
		return warn(check, "chmod 600 "+f.Path, "others on this machine can get at %s (%s)", f.Path, f.Mode.Perm())
	default:
		return good(check, "%s is for its owner alone, on a local disk", f.Path)
	}
}

func judgeJournal(f *fileFacts) Finding {
	if f.Journal != "wal" {
		return bad("durability", "let no other program change it", "journal_mode is %s and not wal", f.Journal)
	}
	return good("durability", "journal_mode is wal, and each commit reaches the disk")
}

// judgeUnopened is about a file that is not opened, because opening it would change it.
func judgeUnopened(f *fileFacts) Finding {
	if f.Header == headerRollback {
		return warn("database", "nothing if it is cronlatch's, from a backup: the first command or daemon switches it to wal; else name another file",
			"%s has another journal than cronlatch's, and is not opened here, which would change it", f.Path)
	}
	return good("database", "SQLite makes what it needs in the file when it is used first")
}
