package database_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/database"
	"github.com/cronlatch/cronlatch/internal/netfault"
	"github.com/cronlatch/cronlatch/internal/pgserver"
)

// The writable server is found behind one that refuses, one that hangs and one that is read-only, and found again when
// it moves.
func TestSeveralHosts(t *testing.T) {
	t.Parallel()
	standby := pgserver.Start(t, pgserver.Setting("default_transaction_read_only", "on"))
	primary := pgserver.Start(t)
	hanging := netfault.Listen(t, primary.Addr())
	hanging.BlackHole()
	moving := netfault.Listen(t, primary.Addr())

	hosts := strings.Join([]string{netfault.ClosedPort(t), hanging.Addr(), standby.Addr(), moving.Addr(), primary.Addr()}, ",")
	db := open(t, "postgres://postgres@"+hosts+"/postgres?sslmode=disable&connect_timeout=5", database.Options{})
	port := func() (port string) {
		require.NoError(t, db.Main.NewRaw("SHOW port").Scan(t.Context(), &port))
		return port
	}
	assert.Equal(t, primary.Addr(), "127.0.0.1:"+port())
	accepted := moving.Accepted()
	assert.Positive(t, accepted, "the hosts are tried in their order")

	moving.Refuse()
	moving.CutAll()
	assert.Equal(t, primary.Addr(), "127.0.0.1:"+port(), "the next host takes over")

	moving.Restore()
	_, err := db.Main.ExecContext(t.Context(), "SET default_transaction_read_only = on")
	require.NoError(t, err)
	_, err = db.Main.ExecContext(t.Context(), "CREATE TABLE x ()")
	assert.Equal(t, "25006", database.SQLState(err))
	_, err = db.Main.ExecContext(t.Context(), "CREATE TABLE x ()")
	require.NoError(t, err, "a new connection to the writable server")
	assert.Equal(t, accepted, moving.Accepted(), "the host that worked last is tried first")
}

func TestReadOnlyServer(t *testing.T) {
	t.Parallel()
	standby := pgserver.Start(t, pgserver.Setting("default_transaction_read_only", "on"))
	err := open(t, standby.URL(), database.Options{}).Main.PingContext(t.Context())
	require.ErrorContains(t, err, "the server is read-only")
	require.ErrorContains(t, err, standby.Addr())
	assert.True(t, database.Unavailable(err))
	require.NoError(t, open(t, standby.URL()+"&target_session_attrs=any", database.Options{}).Main.PingContext(t.Context()))
}

// A context with less time than the hosts need in turn still reaches the last one.
func TestHostsShareTheContextsTime(t *testing.T) {
	t.Parallel()
	hanging, good := via(t)
	hanging.BlackHole()
	at := strings.Index(good, hanging.Addr())
	server := serverURL(t)
	hosts := hanging.Addr() + "," + hanging.Addr() + "," + server[at:strings.LastIndex(server, "/")]
	db := open(t, good[:at]+hosts+"/postgres?sslmode=disable", database.Options{})
	ctx, cancel := context.WithTimeout(t.Context(), 12*time.Second)
	defer cancel()
	require.NoError(t, db.Main.PingContext(ctx))
}

func TestAllHostsFail(t *testing.T) {
	t.Parallel()
	one, two := netfault.ClosedPort(t), netfault.ClosedPort(t)
	err := open(t, "postgres://u:"+canary+"@"+one+","+two+"/d", database.Options{}).Main.PingContext(t.Context())
	require.ErrorContains(t, err, one)
	require.ErrorContains(t, err, two)
	assert.NotContains(t, err.Error(), canary)
	assert.True(t, database.Unavailable(err))
	assert.False(t, database.Unknown(err))
}

func TestSearchPathAndName(t *testing.T) {
	t.Parallel()
	var path, name string
	db := open(t, serverURL(t)+"&search_path=a,%22B%22&application_name=it%27s", database.Options{})
	require.NoError(t, db.Main.NewRaw("SELECT current_setting('search_path'), current_setting('application_name')").
		Scan(t.Context(), &path, &name))
	assert.Equal(t, `a,"B"`, strings.ReplaceAll(path, " ", ""))
	assert.Equal(t, "it's", name)
}
