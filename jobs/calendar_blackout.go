package jobs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Blackout is a window in which a schedule has no instants: once, from one instant to another, or daily, from one local
// time to another. The end is not in it. The zero value drops nothing.
type Blackout struct {
	daily       bool
	from, until int64 // seconds since the epoch, or since local midnight; a daily one with until <= from goes past midnight
}

// ParseBlackout reads two moments as ParseMoment does, or two local times like 22:00 and 06:00 (24:00 is the end of the
// day). The error is a *ScheduleError with code CodeWindow; its Item says which of the two is at fault, -1 both.
func ParseBlackout(from, until string, loc *time.Location) (Blackout, error) {
	start, startDaily := parseClock(from)
	end, endDaily := parseClock(until)
	switch {
	case startDaily && endDaily && start%secondsPerDay == end%secondsPerDay:
		return Blackout{}, blackoutFault(-1, "a blackout from %s until %s is a whole day or nothing; pause the job, or write two different times", from, until)
	case startDaily && endDaily:
		return Blackout{daily: true, from: start % secondsPerDay, until: end}, nil
	case startDaily != endDaily:
		return Blackout{}, blackoutFault(-1, "a blackout from %s until %s mixes a time of day with an instant; write two of a kind", from, until)
	}
	return parseBlackoutOnce(from, until, loc)
}

func parseBlackoutOnce(from, until string, loc *time.Location) (Blackout, error) {
	var at [2]int64
	for i, text := range []string{from, until} {
		t, err := ParseMoment(text, loc)
		if err != nil {
			return Blackout{}, blackoutFault(i, "%s; a daily window has times like 22:00", err.Error())
		}
		at[i] = ceilUnix(t)
	}
	if at[0] >= at[1] {
		return Blackout{}, blackoutFault(-1, "a blackout from %s until %s ends before it begins", from, until)
	}
	return Blackout{from: at[0], until: at[1]}, nil
}

func blackoutFault(item int, format string, args ...any) error {
	return &ScheduleError{Code: CodeWindow, Message: fmt.Sprintf(format, args...), Item: item}
}

// parseClock reads HH:MM or HH:MM:SS as seconds since midnight.
func parseClock(text string) (int64, bool) {
	if text == "24:00" {
		return secondsPerDay, true
	}
	for _, layout := range []string{"15:04", time.TimeOnly} {
		if t, err := time.Parse(layout, text); err == nil && len(text) == len(layout) {
			return int64(t.Hour()*3600 + t.Minute()*60 + t.Second()), true
		}
	}
	return 0, false
}

// behindBlackouts is the instant itself when no blackout has it; otherwise one after it, before which all are dropped.
func (s *Schedule) behindBlackouts(at int64) int64 {
	free := at
	for _, b := range s.blackouts {
		free = max(free, b.end(s.location, at))
	}
	return free
}

// end is how far the window around an instant reaches; the instant itself when it is outside. A daily one is followed to
// the next change of the offset only, behind which the local time is another.
func (b Blackout) end(loc *time.Location, at int64) int64 {
	if !b.daily {
		if at >= b.from && at < b.until {
			return b.until
		}
		return at
	}
	p := periodAt(loc, at)
	clock := floorMod(at+p.offset, secondsPerDay)
	switch {
	case b.from < b.until && clock >= b.from && clock < b.until, b.from > b.until && clock < b.until:
		return min(at+b.until-clock, p.end)
	case b.from > b.until && clock >= b.from:
		return min(at+secondsPerDay-clock+b.until, p.end)
	default:
		return at
	}
}

func (b Blackout) String() string {
	if b.daily {
		return fmt.Sprintf("daily %s-%s", clockText(b.from), clockText(b.until))
	}
	return fmt.Sprintf("%s to %s", time.Unix(b.from, 0).UTC().Format(time.RFC3339), time.Unix(b.until, 0).UTC().Format(time.RFC3339))
}

func clockText(second int64) string {
	text := fmt.Sprintf("%02d:%02d:%02d", second/3600, second/60%60, second%60)
	return strings.TrimSuffix(text, ":00")
}

// blackoutsText is canonical: one line for each window, in one order.
func blackoutsText(list []Blackout) string {
	sorted := slices.Clone(list)
	slices.SortFunc(sorted, func(a, b Blackout) int { return cmp.Compare(a.String(), b.String()) })
	var b strings.Builder
	for _, one := range slices.Compact(sorted) {
		fmt.Fprintf(&b, "blackout %s\n", one)
	}
	return b.String()
}
