//go:build !race

package linear_test

const defaultCalls = 2000
