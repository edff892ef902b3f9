package jobs_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/cronlatch/cronlatch/jobs"
)

// The clocks of New York jump from 02:00 to 03:00 on 2026-03-08; the run of that day comes right after the gap.
func ExampleSchedule_Next() {
	s, err := jobs.ParseSchedule("30 2 * * *", jobs.ScheduleOptions{Timezone: "America/New_York"})
	if err != nil {
		fmt.Println(err)
		return
	}
	at := time.Date(2026, 3, 7, 12, 0, 0, 0, s.Location())
	for range 2 {
		at = s.Next(at)
		fmt.Println(at.Format(time.RFC3339))
	}
	// Output:
	// 2026-03-08T03:00:00-04:00
	// 2026-03-09T02:30:00-04:00
}

func ExampleSchedule_Between() {
	s, err := jobs.ParseSchedule("@every 20m", jobs.ScheduleOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	noon := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	at, more := s.Between(noon, noon.Add(time.Hour), 2)
	for _, t := range at {
		fmt.Println(t.Format(time.TimeOnly))
	}
	fmt.Println("more:", more)
	// Output:
	// 12:20:00
	// 12:40:00
	// more: true
}

func ExampleScheduleError() {
	_, err := jobs.ParseSchedule("61 * * * *", jobs.ScheduleOptions{})
	if fault, ok := errors.AsType[*jobs.ScheduleError](err); ok {
		fmt.Println(fault.Message)
		fmt.Println(fault.Code, fault.Offset, fault.Length)
	}
	// Output:
	// minute 61 is outside 0-59 in "61 * * * *"
	// schedule 0 2
}

// The report that runs on the first of June is about May, and only May's report is locked.
func ExampleTemplate() {
	t, err := jobs.ParseTemplate("report:monthly-YYYY-MM", jobs.TemplateOptions{Offset: "-1mo"})
	if err != nil {
		fmt.Println(err)
		return
	}
	scheduled := time.Date(2026, 6, 1, 6, 0, 0, 0, time.UTC)
	period, _ := t.Period(scheduled)
	fmt.Println(t.At(scheduled), period)
	// Output: report:monthly-2026-05 2026-05
}

func ExampleLoadZone() {
	_, err := jobs.LoadZone("Berlin")
	fmt.Println(err)
	// Output: unknown time zone "Berlin", did you mean Europe/Berlin?
}
