package jobs_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/jobs"
)

func TestLoadZone(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"UTC", "Etc/UTC", "Etc/GMT+5", "Etc/GMT-14", "GMT", "Europe/Berlin", "America/Argentina/Buenos_Aires",
		"Asia/Calcutta", "Japan", "US/Eastern", "Zulu",
	} {
		loc, err := jobs.LoadZone(name)
		require.NoError(t, err)
		assert.Equal(t, name, loc.String())
		again, err := jobs.LoadZone(name)
		require.NoError(t, err)
		assert.Same(t, loc, again, "cached")
	}
}

func TestLoadZoneErrors(t *testing.T) {
	t.Parallel()
	const abbreviation = " is not accepted: an abbreviation does not say which place's rules apply; write "
	cases := map[string]string{
		"":                "the time zone is empty; write UTC or a place like Europe/Berlin",
		"Local":           `time zone "Local" is not accepted: the host's zone differs from replica to replica; write UTC or a place like Europe/Berlin`,
		"CST":             `time zone "CST"` + abbreviation + "America/Chicago, Asia/Shanghai or America/Havana",
		"EST":             `time zone "EST"` + abbreviation + "America/New_York, or Etc/GMT+5 for five hours behind UTC all year",
		"HST":             `time zone "HST"` + abbreviation + "Pacific/Honolulu or America/Anchorage",
		"BST":             `time zone "BST"` + abbreviation + "Europe/London, Europe/Dublin, Asia/Kolkata or Asia/Jerusalem",
		"CET":             `time zone "CET"` + abbreviation + "Europe/Berlin or Europe/Paris",
		"PST8PDT":         `time zone "PST8PDT"` + abbreviation + "America/Los_Angeles",
		"europe/berlin":   `unknown time zone "europe/berlin", did you mean Europe/Berlin?`,
		"Europe/Berln":    `unknown time zone "Europe/Berln", did you mean Europe/Berlin?`,
		"Europe/Tokyo":    `unknown time zone "Europe/Tokyo", did you mean Asia/Tokyo?`,
		"New York":        `unknown time zone "New York", did you mean America/New_York?`,
		"utc":             `unknown time zone "utc", did you mean UTC?`,
		"UTC+02:00":       `unknown time zone "UTC+02:00"; the zone with this fixed offset is Etc/GMT-2 (its sign is the other way round)`,
		"-5":              `unknown time zone "-5"; the zone with this fixed offset is Etc/GMT+5 (its sign is the other way round)`,
		"../zoneinfo.zip": `unknown time zone "../zoneinfo.zip"; write an IANA name like Europe/Berlin, or UTC`,
	}
	for name, message := range cases {
		_, err := jobs.LoadZone(name)
		var fault *jobs.ScheduleError
		require.ErrorAs(t, err, &fault)
		assert.Equal(t, jobs.ScheduleError{Code: jobs.CodeTimezone, Message: message, Length: len(name)}, *fault)
	}
}

// A host with another database, or with a hostile one, computes the same instants.
func TestLoadZoneIgnoresTheHost(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "Africa"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "Africa", "Windhoek"), []byte("not a zone"), 0o600))
	t.Setenv("ZONEINFO", dir)
	t.Setenv("TZ", "Asia/Tokyo")
	s := parse(t, "0 2 * * *", jobs.ScheduleOptions{Timezone: "Africa/Windhoek"})
	assertNext(t, s, "2026-05-01T12:00:00Z", "2026-05-02T02:00:00+02:00")
}

// The archive and ZoneVersion change together, or not at all.
func TestZoneVersionNamesTheArchive(t *testing.T) {
	t.Parallel()
	archive, err := os.ReadFile("zoneinfo.zip")
	require.NoError(t, err)
	sum := sha256.Sum256(archive)
	releases := map[string]string{"2025c": "8f55634d05f8bca1f7bc7c69c5933428c69357e0bdf565e5ba224e3f88ff12e8"}
	assert.Equal(t, releases[jobs.ZoneVersion], hex.EncodeToString(sum[:]),
		"zoneinfo.zip was replaced: set ZoneVersion to its release and write its sum here")
}

// Says, and does not fail, when the toolchain has another release than the copy in this package: take its
// lib/time/zoneinfo.zip then.
func TestZoneVersionAgainstTheToolchain(t *testing.T) {
	t.Parallel()
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Logf("no go command to ask for its release: %v", err)
		return
	}
	script, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), "lib", "time", "update.bash"))
	if err != nil {
		t.Logf("the toolchain does not say which release it has: %v", err)
		return
	}
	release := regexp.MustCompile(`(?m)^DATA=(\w+)$`).FindSubmatch(script)
	if release == nil || string(release[1]) != jobs.ZoneVersion {
		t.Logf("the toolchain has another release of the time zone database: %q; the copy here is %s", release, jobs.ZoneVersion)
	}
}
