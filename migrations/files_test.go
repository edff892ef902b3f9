package migrations

import (
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/uptrace/bun/dialect"
)

func TestBothDatabasesHaveTheSameMigrations(t *testing.T) {
	t.Parallel()
	pg, err := embedded(dialect.PG)
	require.NoError(t, err)
	lite, err := embedded(dialect.SQLite)
	require.NoError(t, err)
	require.NotEmpty(t, pg)
	require.Len(t, lite, len(pg))
	for i := range pg {
		assert.Equal(t, pg[i].String(), lite[i].String())
		assert.NotEqual(t, pg[i].checksum, lite[i].checksum)
	}
}

func TestFingerprintsDiffer(t *testing.T) {
	t.Parallel()
	pg, err := Fingerprint(dialect.PG)
	require.NoError(t, err)
	lite, err := Fingerprint(dialect.SQLite)
	require.NoError(t, err)
	assert.Len(t, pg, 16)
	assert.NotEqual(t, pg, lite)
}

func TestFileNamesMustCount(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"0002_first.sql": "migrations: 0002_first.sql should have the number 0001",
		"1_first.sql":    "migrations: 1_first.sql is not named like 0001_initial.sql",
		"0001_First.sql": "migrations: 0001_First.sql is not named like 0001_initial.sql",
		"README.md":      "migrations: README.md is not named like 0001_initial.sql",
	} {
		_, err := read(fstest.MapFS{name: {Data: []byte("SELECT 1")}})
		require.EqualError(t, err, want)
	}
	_, err := read(fstest.MapFS{"0001_a.sql": {}, "0001_b.sql": {}})
	require.EqualError(t, err, "migrations: 0001_b.sql should have the number 0002")
}

func TestChecksumIgnoresHowLinesEnd(t *testing.T) {
	t.Parallel()
	assert.Equal(t, newFile(1, "a", []byte("x\ny\n")), newFile(1, "a", []byte("x\r\ny\r\n")))
	assert.NotEqual(t, newFile(1, "a", []byte("x\ny\n")).checksum, newFile(1, "a", []byte("x\ny")).checksum)
}

func TestCompare(t *testing.T) {
	t.Parallel()
	files := []file{newFile(1, "a", []byte("a")), newFile(2, "b", []byte("b"))}
	marked := func(list ...file) (marks []mark) {
		for _, f := range list {
			marks = append(marks, mark{version: f.version, name: f.name, checksum: f.checksum, appliedAt: time.Unix(0, 0).UTC()})
		}
		return marks
	}
	other := newFile(1, "a", []byte("changed"))
	require.NoError(t, compare(files, marked(files...)))
	require.ErrorIs(t, compare(files, nil), ErrPending)
	require.ErrorIs(t, compare(files, marked(files[0])), ErrPending)
	require.ErrorIs(t, compare(files[:1], marked(files...)), ErrNewer)
	require.ErrorIs(t, compare(files, marked(files[1])), ErrChanged)
	require.ErrorIs(t, compare(files, marked(other, files[1])), ErrChanged)
	// What is wrong with the common part comes before what is newer.
	require.ErrorIs(t, compare(files[:1], marked(other, files[1])), ErrChanged)
}
