package jobs

import (
	"archive/zip"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
)

// ZoneVersion is the release of the IANA time zone database in zoneinfo.zip. It is part of every schedule's Hash,
// because another release can compute other instants.
const ZoneVersion = "2025c"

// The compiled IANA time zone database, a copy of lib/time/zoneinfo.zip of the Go toolchain. The IANA asserts that the
// database is in the public domain. The host's database and $ZONEINFO are never read: two replicas with two releases
// would compute two instants for one occurrence.
//
//go:embed zoneinfo.zip
var zoneArchive string

// zoneDatabase is the opened archive with the zones that were asked for.
type zoneDatabase struct {
	files map[string]*zip.File
	names []string // sorted

	mu     sync.Mutex
	loaded map[string]*time.Location
}

var openZones = sync.OnceValues(newZoneDatabase) //nolint:gochecknoglobals // a cache over constant data

func newZoneDatabase() (*zoneDatabase, error) {
	r, err := zip.NewReader(strings.NewReader(zoneArchive), int64(len(zoneArchive)))
	if err != nil {
		return nil, fmt.Errorf("open embedded time zone database: %w", err)
	}
	db := &zoneDatabase{files: map[string]*zip.File{}, loaded: map[string]*time.Location{}}
	for _, f := range r.File {
		if _, refused := refusedZone(f.Name); refused || f.FileInfo().IsDir() {
			continue
		}
		db.files[f.Name] = f
		db.names = append(db.names, f.Name)
	}
	slices.Sort(db.names)
	return db, nil
}

// LoadZone reads a zone from the embedded database. A name that is not in it, or that is no place to keep a schedule
// in ("Local", "EST"), is a *ScheduleError with the code timezone and a suggestion.
func LoadZone(name string) (*time.Location, error) {
	if name == "UTC" {
		return time.UTC, nil
	}
	db, err := openZones()
	if err != nil {
		return nil, zoneFault(name, err.Error())
	}
	loc, err := db.load(name)
	switch {
	case errors.Is(err, errUnknownZone):
		return nil, zoneFault(name, db.explain(name))
	case err != nil:
		return nil, zoneFault(name, err.Error())
	}
	return loc, nil
}

var errUnknownZone = errors.New("unknown zone")

func (db *zoneDatabase) load(name string) (*time.Location, error) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if loc := db.loaded[name]; loc != nil {
		return loc, nil
	}
	f := db.files[name]
	if f == nil {
		return nil, errUnknownZone
	}
	data, err := readZipFile(f)
	if err != nil {
		return nil, fmt.Errorf("read time zone %s: %w", name, err)
	}
	loc, err := time.LoadLocationFromTZData(name, data)
	if err != nil {
		return nil, fmt.Errorf("read time zone %s: %w", name, err)
	}
	db.loaded[name] = loc
	return loc, nil
}

func readZipFile(f *zip.File) ([]byte, error) {
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(r)
	return data, errors.Join(err, r.Close())
}

func zoneFault(name, message string) error {
	return &ScheduleError{Code: CodeTimezone, Message: message, Length: len(name)}
}
