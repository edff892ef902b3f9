//go:build race

package jobs_test

// The race detector looks at code, not at calendars.
const featureExpressions = 100
