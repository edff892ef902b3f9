package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/locking"
	"github.com/cronlatch/cronlatch/migrations"
)

// Every judgement, with the facts that make it. A finding that is not ok says what to do.
func TestJudgements(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	remote, verified := database.Host{Address: "db:5432", SSLMode: "require"}, database.Host{Address: "db:5432", SSLMode: "verify-full", Verified: true}
	server := postgresFacts{Version: "16.1", VersionNumber: 160_001, Role: "r", Schema: "public", MayCreate: true, SynchronousCommit: "on"}
	with := func(change func(*postgresFacts)) *postgresFacts {
		f := server
		change(&f)
		return &f
	}
	file := fileFacts{Path: "f.db", Mode: 0o600, FreeBytes: 1 << 40}
	disk := func(free uint64) Finding { f := file; f.FreeBytes = free; return judgeFile(&f)[1] }
	inFile := func(change func(*fileFacts)) Finding { f := file; change(&f); return judgeFile(&f)[0] }
	up, silent := replicaFacts{"a", "1", "x", 0}, replicaFacts{"s", "1", "x", time.Hour}
	left := []locking.Record{{Resource: "r", ExpiresAt: now.Add(-time.Hour)}}
	for i, c := range []struct {
		want  Level
		found Finding
	}{
		{OK, judgeServer(&server)},
		{Fail, judgeServer(with(func(f *postgresFacts) { f.Recovering = true }))},
		{Warn, judgeServer(with(func(f *postgresFacts) { f.VersionNumber = 130_000 }))},
		{Warn, judgeTLS([]database.Host{remote}, new(true), false)},
		{Warn, judgeTLS([]database.Host{verified, remote}, new(true), true)},
		{OK, judgeTLS([]database.Host{verified}, new(true), false)},
		{OK, judgeTLS([]database.Host{verified}, nil, true)},
		{Warn, judgeTLS([]database.Host{verified}, nil, false)},
		{OK, judgeTLS([]database.Host{{Local: true}}, new(false), false)},
		{OK, judgeRole(&server, nil)},
		{Fail, judgeRole(&server, []string{"DELETE on job_runs"})},
		{Fail, judgeRole(with(func(f *postgresFacts) { f.Schema = "" }), nil)},
		{Warn, judgeRole(with(func(f *postgresFacts) { f.Superuser = true }), nil)},
		{Warn, judgeRole(with(func(f *postgresFacts) { f.MayCreate = false }), nil)},
		{OK, judgeSchema(nil, false, false)},
		{Warn, judgeSchema(migrations.ErrPending, true, true)},
		{Warn, judgeSchema(fmt.Errorf("x: %w", migrations.ErrPending), false, true)},
		{Fail, judgeSchema(migrations.ErrPending, true, false)},
		{Fail, judgeSchema(fmt.Errorf("x: %w", migrations.ErrPending), false, false)},
		{Fail, judgeSchema(migrations.ErrNewer, false, true)},
		{Fail, judgeSchema(migrations.ErrChanged, false, true)},
		{Fail, judgeSchema(errors.New("x"), false, true)},
		{OK, judgePooler(true)},
		{OK, judgeClock(clockFacts{Offset: -time.Second, Trip: time.Millisecond}, 30*time.Second)},
		{Warn, judgeClock(clockFacts{Offset: -3 * time.Second, Trip: time.Millisecond}, 30*time.Second)},
		{Warn, judgeClock(clockFacts{Trip: time.Second}, 30*time.Second)},
		{Fail, judgeClock(clockFacts{Trip: time.Second}, 5*time.Second)},
		{OK, judgeDurability(&server)},
		{Fail, judgeDurability(with(func(f *postgresFacts) { f.SynchronousCommit = "off" }))},
		{Warn, judgeDurability(with(func(f *postgresFacts) { f.Fsync = "off" }))},
		{Warn, judgeDurability(with(func(f *postgresFacts) { f.Standbys = 1 }))},
		{OK, judgeDurability(with(func(f *postgresFacts) { f.Standbys, f.SyncStandbys = 1, "*" }))},
		{Warn, judgeDurability(with(func(f *postgresFacts) { f.SyncStandbys, f.SynchronousCommit = "*", "local" }))},
		{OK, inFile(func(*fileFacts) {})},
		{Fail, inFile(func(f *fileFacts) { f.Network = "NFS" })},
		{OK, inFile(func(f *fileFacts) { f.Err = fs.ErrNotExist })},
		{Fail, inFile(func(f *fileFacts) { f.Err = fs.ErrPermission })},
		{Warn, inFile(func(f *fileFacts) { f.Mode = 0o640 })},
		{Warn, inFile(func(f *fileFacts) { f.Overlay = true })},
		{Warn, inFile(func(f *fileFacts) { f.Memory = true })},
		{Warn, inFile(func(f *fileFacts) { f.Memory, f.Err = true, fs.ErrNotExist })},
		{Fail, inFile(func(f *fileFacts) { f.NoFolder, f.Err = true, fs.ErrNotExist })},
		{Fail, inFile(func(f *fileFacts) { f.Mode = fs.ModeDir | 0o700 })},
		{Fail, inFile(func(f *fileFacts) { f.Mode = fs.ModeNamedPipe | 0o600 })},
		{Fail, inFile(func(f *fileFacts) { f.Access = fs.ErrPermission })},
		{Fail, inFile(func(f *fileFacts) { f.InFolder = fs.ErrPermission })},
		{Fail, inFile(func(f *fileFacts) { f.Header = headerForeign })},
		{Warn, judgeUnopened(&fileFacts{Header: headerRollback})},
		{OK, judgeUnopened(&fileFacts{Header: headerEmpty})},
		{OK, disk(2 << 30)},
		{Warn, disk(100 << 20)},
		{Fail, disk(1 << 20)},
		{Warn, judgeReplicas(nil, time.Minute)},
		{Fail, judgeReplicas([]replicaFacts{silent}, time.Minute)},
		{Warn, judgeReplicas([]replicaFacts{up, silent}, time.Minute)},
		{OK, judgeReplicas([]replicaFacts{up}, time.Minute)},
		{OK, judgeReplicas([]replicaFacts{up, up}, time.Minute)},
		{Warn, judgeReplicas([]replicaFacts{up, {"b", "2", "x", 0}}, time.Minute)},
		{Warn, judgeReplicas([]replicaFacts{up, {"b", "1", "y", 0}}, time.Minute)},
		{OK, judgeLocks(nil, now, time.Minute, false)},
		{OK, judgeLocks(left, now, time.Hour, false)},
		{OK, judgeLocks(left, now, time.Minute, true)},
		{Warn, judgeLocks(left, now, time.Minute, false)},
		{Warn, judgeConfiguration(&Configuration{Missing: true})},
		{Fail, judgeConfiguration(&Configuration{Err: fs.ErrPermission})},
		{Warn, judgeConfiguration(&Configuration{Warnings: 2})},
		{OK, judgeListener(&listenerFacts{})},
		{OK, judgeListener(&listenerFacts{Answering: true})},
		{Fail, judgeListener(&listenerFacts{Taken: errors.New("in use")})},
		{Fail, judgeListener(&listenerFacts{Exposed: errors.New("all may"), Remedy: "x"})},
		{OK, judgeToken("t", 0o600, nil)},
		{OK, judgeToken("t", 0, fs.ErrNotExist)},
		{Fail, judgeToken("t", 0o640, nil)},
		{Warn, judgeToken("t", 0, fs.ErrPermission)},
		{OK, judgeSupervisor(nil, nil)},
		{Warn, judgeSupervisor([]string{"x"}, nil)},
		{Fail, judgeSupervisor(nil, errors.New("x"))},
		{OK, judgeFiles(1024, 16)},
		{Warn, judgeFiles(256, 16)},
		{Warn, judgeFiles(1024, 1000)},
		{OK, judgeRoot(false, nil)},
		{Warn, judgeRoot(true, []*jobs.Job{{Name: "j", Run: "x"}})},
		{OK, judgeRoot(true, []*jobs.Job{{Name: "j", Run: "x", User: "u"}, {Name: "h", HTTP: &jobs.HTTP{}}})},
	} {
		assert.Equal(t, c.want, c.found.Level, "%d: %+v", i, c.found)
		assert.Equal(t, c.want == OK, c.found.Remedy == "", "%d: %+v", i, c.found)
	}
	assert.Equal(t, Fail, Worst([]Finding{{Level: Warn}, {Level: Fail}, {Level: Warn}, {Level: OK}}))
	assert.Equal(t, Warn, Worst([]Finding{{Level: Warn}, {Level: OK}}))
}
