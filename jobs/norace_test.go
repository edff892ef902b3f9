//go:build !race

package jobs_test

const featureExpressions = 2000
