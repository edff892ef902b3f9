package doctor

import "fmt"

// Level is how bad a finding is.
type Level string

// The levels.
const (
	OK   Level = "ok"
	Warn Level = "warn" // it works, and could be better
	Fail Level = "fail" // it does not work, or will not
)

// Finding is one line of the examination.
type Finding struct {
	Level  Level  `json:"level"`
	Check  string `json:"check"`
	Found  string `json:"found"`
	Remedy string `json:"remedy,omitempty"` // what to do; empty when all is well
}

func good(check, format string, args ...any) Finding {
	return Finding{Level: OK, Check: check, Found: fmt.Sprintf(format, args...)}
}

func warn(check, remedy, format string, args ...any) Finding {
	return Finding{Warn, check, fmt.Sprintf(format, args...), remedy}
}

func bad(check, remedy, format string, args ...any) Finding {
	return Finding{Fail, check, fmt.Sprintf(format, args...), remedy}
}

// unknown is for facts that could not be had.
func unknown(check string, err error) Finding {
	return warn(check, "nothing, if everything else is well", "this could not be found out: %v", err)
}

// Worst is the worst level of all.
func Worst(findings []Finding) Level {
	worst := OK
	for _, f := range findings {
		if f.Level == Fail || f.Level == Warn && worst == OK {
			worst = f.Level
		}
	}
	return worst
}
