//go:build race

package linear_test

// The race detector makes SQLite ten times slower and looks at code, not at histories.
const defaultCalls = 400
