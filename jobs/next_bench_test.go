package jobs_test

import (
	"testing"
	"time"

	"github.com/cronlatch/cronlatch/jobs"
)

func BenchmarkNext(b *testing.B) {
	cases := []struct {
		name, text string
		o          jobs.ScheduleOptions
	}{
		{"every_second_UTC", "* * * * * *", jobs.ScheduleOptions{Seconds: true}},
		{"every_minute_Berlin", "* * * * *", jobs.ScheduleOptions{Timezone: "Europe/Berlin"}},
		{"daily_UTC", "0 2 * * *", jobs.ScheduleOptions{}},
		{"daily_NewYork", "30 2 * * *", jobs.ScheduleOptions{Timezone: "America/New_York"}},
		{"monthly_Berlin", "0 6 1 * *", jobs.ScheduleOptions{Timezone: "Europe/Berlin"}},
		{"leap_day_Santiago", "0 0 29 2 *", jobs.ScheduleOptions{Timezone: "America/Santiago"}},
		{"interval", "@every 15m", jobs.ScheduleOptions{}},
	}
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range cases {
		b.Run(c.name, func(b *testing.B) {
			s := parse(b, c.text, c.o)
			at := start
			for b.Loop() {
				if at = s.Next(at); at.Year() > 2090 {
					at = start
				}
			}
		})
	}
}

func BenchmarkParseSchedule(b *testing.B) {
	for b.Loop() {
		_ = parse(b, "*/5 8-18 * * MON-FRI", jobs.ScheduleOptions{Timezone: "Europe/Berlin"})
	}
}

func BenchmarkTemplate(b *testing.B) {
	t := template(b, "report:monthly-YYYY-MM", jobs.TemplateOptions{Offset: "-1mo"})
	at := time.Date(2026, 3, 31, 6, 0, 0, 0, time.UTC)
	for b.Loop() {
		_ = t.At(at)
	}
}

// What calendars cost; the plain ones above must stay without allocation.
func BenchmarkNextFeatures(b *testing.B) {
	holidays := calendarOf(b, jobs.CalendarOptions{Dates: []string{"12-25", "12-26", "01-01", "05-01", "2026-04-03"}, Weekdays: []string{"sat", "sun"}})
	calendars := jobs.Calendars{Exclude: []*jobs.Calendar{holidays}, Shift: jobs.ShiftNext}
	cases := []struct {
		name  string
		texts []string
		o     jobs.ScheduleOptions
	}{
		{"list_of_three", []string{"0 9 * * *", "30 11 * * MON", "@every 36h"}, jobs.ScheduleOptions{}},
		{"last_friday", []string{"0 9 * * 5L"}, jobs.ScheduleOptions{}},
		{"all_29_February", []string{"0 9 29 2 MON"}, jobs.ScheduleOptions{DayMatch: jobs.DayMatchAll, Timezone: "Europe/Berlin"}},
		{"holidays_daily", []string{"0 9 * * *"}, jobs.ScheduleOptions{Calendars: calendars}},
		{"holidays_yearly_Berlin", []string{"0 9 1 1 *"}, jobs.ScheduleOptions{Calendars: calendars, Timezone: "Europe/Berlin"}},
	}
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, c := range cases {
		b.Run(c.name, func(b *testing.B) {
			s := parseList(b, c.o, c.texts...)
			b.ReportAllocs()
			at := start
			for b.Loop() {
				if at = s.Next(at); at.Year() > 2090 {
					at = start
				}
			}
		})
	}
}
