// Package deploy_test holds the files for deployment against what they must have: the compose file, loaded as Docker
// does, and the image's recipe.
package deploy_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/cronlatch/cronlatch/configs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const root = ".."

func load(t *testing.T, env map[string]string) (*types.Project, error) {
	t.Helper()
	dir, err := filepath.Abs(root)
	require.NoError(t, err)
	return loader.LoadWithContext(t.Context(), types.ConfigDetails{
		WorkingDir:  dir,
		ConfigFiles: []types.ConfigFile{{Filename: filepath.Join(dir, "docker-compose.yml")}},
		Environment: env,
	})
}

func loaded(t *testing.T) *types.Project {
	t.Helper()
	p, err := load(t, map[string]string{"POSTGRES_PASSWORD": "p$word:/@"})
	require.NoError(t, err)
	return p
}

func service(t *testing.T, name string) types.ServiceConfig {
	t.Helper()
	s, err := loaded(t).GetService(name)
	require.NoError(t, err)
	return s
}

func value(t *testing.T, s types.ServiceConfig, name string) string {
	t.Helper()
	v := s.Environment[name]
	require.NotNil(t, v, name)
	return *v
}

// sample is the configuration that the replicas of the compose file run.
func sample(t *testing.T, s types.ServiceConfig) *configs.Config {
	t.Helper()
	for _, v := range s.Volumes {
		if v.Target == "/srv/cronlatch/cronlatch.yaml" {
			assert.True(t, v.ReadOnly)
			c, err := configs.Load(v.Source, configs.Options{})
			require.NoError(t, err)
			return c
		}
	}
	t.Fatal("no configuration is mounted")
	return nil
}

func TestPasswordIsNeeded(t *testing.T) {
	t.Parallel()
	for _, env := range []map[string]string{nil, {"POSTGRES_PASSWORD": ""}} {
		_, err := load(t, env)
		require.ErrorContains(t, err, "choose a password for the database")
	}
}

func TestPasswordIsOnlyInTheEnvironment(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "p$word:/@", value(t, service(t, "postgres"), "POSTGRES_PASSWORD"))
	assert.Equal(t, "p$word:/@", value(t, service(t, "cronlatch"), "PGPASSWORD"))
	text, err := os.ReadFile(filepath.Join(root, "docker-compose.yml"))
	require.NoError(t, err)
	assert.NotRegexp(t, `(?im)^\s*\w*password: *[^$\s]`, string(text), "written down")
}

func TestThreeReplicasThatCanBeMore(t *testing.T) {
	t.Parallel()
	s := service(t, "cronlatch")
	require.NotNil(t, s.Deploy)
	require.NotNil(t, s.Deploy.Replicas)
	assert.Equal(t, 3, *s.Deploy.Replicas)
	assert.Empty(t, s.Ports, "a host port can be taken once")
	assert.Empty(t, s.ContainerName, "a name can be taken once")
	assert.Empty(t, s.Hostname, "the replicas are named by their host names")
	assert.NotContains(t, s.Environment, "CRONLATCH_REPLICA")
	assert.NotContains(t, s.Command, "--replica")
	assert.Empty(t, s.NetworkMode)
}

func TestReplicasUseTheDatabaseOnceItIsHealthy(t *testing.T) {
	t.Parallel()
	pg, s := service(t, "postgres"), service(t, "cronlatch")
	assert.Equal(t, "postgres:17", pg.Image)
	assert.Empty(t, pg.Ports, "the database is not for the outside")
	require.NotNil(t, pg.HealthCheck)
	assert.Contains(t, pg.HealthCheck.Test, "pg_isready")
	assert.Equal(t, types.ServiceConditionHealthy, s.DependsOn["postgres"].Condition)
	for mine, theirs := range map[string]string{"PGUSER": "POSTGRES_USER", "PGDATABASE": "POSTGRES_DB"} {
		assert.Equal(t, value(t, pg, theirs), value(t, s, mine))
	}
	assert.Equal(t, "postgres", value(t, s, "PGHOST"))
	assert.Empty(t, sample(t, s).Database.URL, "the file would win over PGHOST")
	data := false
	for _, v := range pg.Volumes {
		data = data || v.Type == types.VolumeTypeVolume && v.Target == "/var/lib/postgresql/data"
	}
	assert.True(t, data, "the data must outlive the container")
}

func TestStoppingLeavesTimeToDrain(t *testing.T) {
	t.Parallel()
	s := service(t, "cronlatch")
	c := sample(t, s)
	longest := time.Duration(0)
	for _, job := range c.Jobs {
		longest = max(longest, job.KillAfter)
	}
	const writing = 5 * time.Second // outcomes, after the last process is dead
	require.NotNil(t, s.StopGracePeriod)
	assert.Greater(t, time.Duration(*s.StopGracePeriod), c.DrainTimeout+longest+writing)
	assert.Empty(t, s.StopSignal, "SIGTERM is what drains")
}

func TestReplicasAreWatchedAndRestarted(t *testing.T) {
	t.Parallel()
	s := service(t, "cronlatch")
	for _, name := range []string{"postgres", "cronlatch"} {
		assert.Equal(t, types.RestartPolicyUnlessStopped, service(t, name).Restart)
	}
	require.NotNil(t, s.HealthCheck)
	assert.Equal(t, types.HealthCheckTest{"CMD", "cronlatch", "health"}, s.HealthCheck.Test)
	require.NotNil(t, s.Init)
	assert.True(t, *s.Init)
	assert.Equal(t, sample(t, s).Listen, value(t, s, "CRONLATCH_LISTEN"))
	assert.True(t, strings.HasPrefix(value(t, s, "CRONLATCH_LISTEN"), "127.0.0.1:"), "another address needs authentication")
}

func TestReplicasMayDoLittle(t *testing.T) {
	t.Parallel()
	s := service(t, "cronlatch")
	assert.Equal(t, []string{"ALL"}, s.CapDrop)
	assert.Contains(t, s.SecurityOpt, "no-new-privileges:true")
	assert.True(t, s.ReadOnly)
	assert.False(t, s.Privileged)
}

func TestEveryVolumeIsDeclared(t *testing.T) {
	t.Parallel()
	p := loaded(t)
	for _, s := range p.Services {
		for _, v := range s.Volumes {
			if v.Type == types.VolumeTypeVolume {
				assert.Contains(t, p.Volumes, v.Source)
			} else {
				assert.FileExists(t, v.Source)
			}
		}
	}
}

func TestDockerfileFitsTheModule(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile(filepath.Join(root, "Dockerfile"))
	require.NoError(t, err)
	recipe := string(content)
	module, err := os.ReadFile(filepath.Join(root, "go.mod"))
	require.NoError(t, err)
	version := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindSubmatch(module)
	require.NotNil(t, version)
	assert.Contains(t, recipe, "FROM golang:"+string(version[1])+"-alpine AS build\n")
	for _, line := range []string{
		"CGO_ENABLED=0 go build -trimpath ", "USER 10001:10001\n", `CMD ["cronlatch", "health"]` + "\n",
		`ENTRYPOINT ["/sbin/tini", "-s", "--", "cronlatch"]` + "\n", `CMD ["serve"]` + "\n",
	} {
		assert.Contains(t, recipe, line)
	}
}

// A folder that .dockerignore forgets would be missing in the image's build and nowhere else.
func TestDockerignoreKeepsWhatTheBuildReads(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile(filepath.Join(root, ".dockerignore"))
	require.NoError(t, err)
	kept := strings.Split(string(content), "\n")
	entries, err := os.ReadDir(root)
	require.NoError(t, err)
	for _, e := range entries {
		if !e.IsDir() || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		code, err := hasCode(filepath.Join(root, e.Name()))
		require.NoError(t, err)
		if code {
			assert.Contains(t, kept, "!"+e.Name())
		}
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		assert.Contains(t, kept, "!"+name)
	}
}

// hasCode reports whether a folder holds Go files that are no tests.
func hasCode(dir string) (found bool, err error) {
	err = filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		found = found || strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go")
		return err
	})
	return found, err
}
