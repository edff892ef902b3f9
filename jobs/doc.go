// Package jobs holds the nouns of cronlatch: what a job is, when it is due, which resource an occurrence locks, and the
// ledger of runs.
//
// # Model
//
// A [Job] is a definition. Its [Schedule] is a set of instants; one instant of one job is an occurrence, whose identity
// is computed from the schedule and never from the current time. A [Run] is one attempt at an occurrence: a row of the
// ledger. A [Template] turns the instant into the name of the resource to lock (report:monthly-YYYY-MM).
//
// The text of a schedule goes through four steps:
//
//	tokenize.go, tokenize_field.go   text to checked, normalized fields; fixed or interval; every error with its place
//	tokenize_spread.go               H, the value that the job's name picks, is replaced by that value
//	tokenize_monthly.go              L, W and # are taken out: days that each month decides anew
//	schedule_robfig.go               robfig/cron's parser reads the normalized fields into sets of values
//	schedule_never.go                a date that no year has is an error, not a job that never runs
//	next.go, next_calendar.go        from an instant to the next one; next_monthly.go for L, W and #
//
// What a job says beside the text is laid over that: calendar_rule.go drops dates that calendars exclude, or moves them,
// before times of day are looked at, so that a moved instant is a local time like any other; calendar_blackout.go and
// schedule_window.go drop instants at the end. calendar.go and calendar_ical.go make the sets of dates. schedule_jitter.go
// moves when a run is due, and not the instant.
//
// Fields are minute, hour, day of month, month and day of week, with the second in front when the job says so. Values,
// names (JAN, Friday), lists, ranges that may wrap (22-2, FRI-MON), steps; 7 is Sunday. When both day fields are
// restricted, either matches, or both must ([DayMatch]); only a bare * (or ?) is no restriction, */2 is one. @every counts elapsed time from the Unix epoch.
//
// A schedule is fixed when neither its minute nor its hour (nor its second) has a *, a range or a step. A fixed one
// means times on the wall: the [DST] policy decides what follows when a change of the zone's offset leaves such a time
// out or repeats it. All others, the interval schedules, follow elapsed time: both passes of a doubled hour, nothing in
// a gap. A missing time runs at the first instant after its gap, once even if several map to it; a gap of more than
// three hours is a change of zone and is not made up for.
//
// # Guarantees
//
//   - [Schedule.Next] is a pure function of the schedule and the instant. Replicas with the same binary find the same
//     instants, whatever their host's zone, zone database or clock: the database is embedded, see [ZoneVersion].
//   - Next is strictly increasing and always ends. A schedule that [ParseSchedule] accepted has a next instant until
//     the end of the year 9999, unless from, until or its calendars end it; it has one in any case.
//   - Every instant matches the fields, or is the first one after a gap that left a match out, or calendars moved a match
//     to its date.
//   - H depends on the job's name and the field alone, [Job.DueAt] on the name and the instant.
//   - [Schedule.Hash] changes when anything changes that decides the instants. Equal hashes are equal instants.
//   - A template changes nothing but its tokens, and what it is filled with is as long as the token.
//   - Nothing in this package panics on any input; faults of a definition come with their place in the text.
//
// # What is not guaranteed
//
//   - Replicas with different releases of the zone database can disagree about future instants. Their hashes differ,
//     which is how it is noticed.
//   - Leap seconds do not exist here, as in Unix time.
//   - A day of the month stays what it says: "0 0 31 * *" does not run in months of thirty days.
//   - Instants before standard time (local mean time, with offsets of seconds) follow the same rules but are as good as
//     the database's knowledge of them.
//   - The ledger records what the database accepted. What a command did before its replica died is not in it.
//
// # Failure handling
//
// [ParseSchedule] and [LoadZone] return a [*ScheduleError], [ParseTemplate] a [*TemplateError]: a code, a sentence with
// the way out, and the place. Nothing is half loaded. A never-firing schedule is refused with the reason. Next returns
// the zero time when there is no further instant. Errors of the ledger are the database's, wrapped once; they leave the
// transaction to its owner.
//
// # How to test
//
// testdata/calendar.tsv has right answers, computed by a scan outside this package. next_zones_test.go tries
// random schedules around changes of every zone against the oracle in next_oracle_test.go, which enumerates local
// minutes and shares no code with the package; next_features_test.go does so with lists, H, L, W, # and calendars.
// CRONLATCH_CALENDAR_WINDOWS=200 makes both long runs, and CRONLATCH_CALENDAR_SEED other ones. FuzzParseSchedule,
// FuzzICalendar and FuzzTemplate run their seeds in every go test. To take a new release of the zone database, copy
// lib/time/zoneinfo.zip of a newer Go toolchain here; TestZoneVersionNamesTheArchive says what else to change.
package jobs
