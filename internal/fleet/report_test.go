package fleet

import (
	"encoding/csv"
	"fmt"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/configs"
	"github.com/cronlatch/cronlatch/internal/boottime"
	"github.com/cronlatch/cronlatch/internal/fleet/check"
	"github.com/cronlatch/cronlatch/jobs"
)

const reportJob = "report:monthly"

// The sample's report job on the data that ships with it: three replicas, one instant, one run under the lock of the
// month, one report with the right numbers. Its schedule and offset are moved so that the instant comes in a moment and
// the month is one of the data's.
func TestSampleReportIsWrittenOnce(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, url string) {
		t.Helper()
		f := New(t, url, Settings{})
		require.NoError(t, os.Remove(f.config()))
		_, err := configs.WriteSample(f.dir)
		require.NoError(t, err)
		orders := readOrders(t, filepath.Join(f.dir, "data", "orders.csv"))
		month := slices.Sorted(maps.Keys(orders))[5] // any of the past
		at := f.now().Truncate(time.Second).Add(toStart)
		f.reschedule(at, month)

		f.startReady("a", "b", "c")
		require.True(t, f.now().Before(at), "all replicas were there before the instant")
		var run jobs.Run
		until(t, "the report's run is over", patience, func() bool {
			runs := ofJob(f.Runs(), reportJob)
			if len(runs) == 0 || runs[0].State != jobs.StateFinished {
				return false
			}
			run = runs[0]
			return true
		})
		pass(t, boottime.Now()+3*time.Second) // every replica has looked again
		assert.Equal(t, jobs.OutcomeSucceeded, run.Outcome)
		assert.Equal(t, "report:monthly-"+month, run.Resource)
		assert.True(t, at.Equal(run.ScheduledAt))
		assert.Len(t, ofJob(f.Runs(), reportJob), 1)
		want := orders[month].text(month)
		assert.Equal(t, want, f.read("reports", month+".txt"))
		out, err := f.Ledger.Output(t.Context(), run.ID)
		require.NoError(t, err)
		assert.Equal(t, want, string(out.Head)+string(out.Tail))

		code, printed := f.Cronlatch("run", reportJob)
		assert.Equal(t, 0, code, printed)
		assert.Contains(t, printed, want)
		files, err := os.ReadDir(filepath.Join(f.dir, "reports"))
		require.NoError(t, err)
		assert.Len(t, files, 1, "no draft is left")
		f.LeaveAll()
		require.NoError(t, check.Tokens(f.Runs()))
		for _, r := range f.Replicas() {
			require.NoError(t, check.Log(r.Log(), passwordCanary, environCanary))
		}
	})
}

func (f *Fleet) read(elements ...string) string {
	f.tb.Helper()
	content, err := os.ReadFile(filepath.Join(append([]string{f.dir}, elements...)...))
	f.must(err)
	return string(content)
}

// reschedule moves the report job to one instant, and its offset to a month.
func (f *Fleet) reschedule(at time.Time, month string) {
	f.tb.Helper()
	target, err := time.Parse("2006-01", month)
	f.must(err)
	months := (at.Year()-target.Year())*12 + int(at.Month()-target.Month())
	text := f.read("cronlatch.yaml")
	for old, replacement := range map[string]string{
		`schedule: "0 6 1 * *"`: fmt.Sprintf("schedule: \"%d %d %d %d %d *\"\n    seconds: true", at.Second(), at.Minute(), at.Hour(), at.Day(), at.Month()),
		`resource_offset: -1mo`: fmt.Sprintf("resource_offset: -%dmo", months),
	} {
		require.Equal(f.tb, 1, strings.Count(text, old), old)
		text = strings.Replace(text, old, replacement, 1)
	}
	f.must(os.WriteFile(f.config(), []byte(text), 0o600))
}

// sales are what the report is about, counted in another way than the report does: exactly.
type sales struct {
	regions []string // in the order in which they appear
	revenue map[string]*big.Rat
	orders  int
}

func readOrders(t *testing.T, path string) map[string]*sales {
	t.Helper()
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close() //nolint:errcheck // it was only read
	rows, err := csv.NewReader(file).ReadAll()
	require.NoError(t, err)
	region, amount := slices.Index(rows[0], "region"), slices.Index(rows[0], "amount")
	require.NotEqual(t, region, amount)
	byMonth := map[string]*sales{}
	for _, row := range rows[1:] {
		month := row[0][:len("2006-01")]
		s := byMonth[month]
		if s == nil {
			s = &sales{revenue: map[string]*big.Rat{}}
			byMonth[month] = s
		}
		value, ok := new(big.Rat).SetString(row[amount])
		require.True(t, ok, row)
		if s.revenue[row[region]] == nil {
			s.revenue[row[region]] = new(big.Rat)
			s.regions = append(s.regions, row[region])
		}
		s.revenue[row[region]].Add(s.revenue[row[region]], value)
		s.orders++
	}
	return byMonth
}

func (s *sales) text(month string) string {
	var b strings.Builder
	total := new(big.Rat)
	fmt.Fprintf(&b, "Revenue %s\n\n", month)
	for _, region := range s.regions {
		fmt.Fprintf(&b, "%-10s %12s\n", region, s.revenue[region].FloatString(2))
		total.Add(total, s.revenue[region])
	}
	fmt.Fprintf(&b, "%-10s %12s\n\n%d orders\n", "total", total.FloatString(2), s.orders)
	return b.String()
}
