package main

import (
	"fmt"
	"strconv"
	"strings"
)

// The exit codes. This table, `cronlatch help exit-codes` and the manual are one and the same.
const (
	exitOK            = 0
	exitFailure       = 1
	exitChanges       = 2
	exitUsage         = 64
	exitUnavailable   = 69
	exitBusy          = 75
	exitLost          = 76
	exitDenied        = 77
	exitConfig        = 78
	exitTimedOut      = 124
	exitNotExecutable = 126
	exitNotFound      = 127
	exitSignal        = 128 // plus the signal's number
)

// exitInterrupted is what a command says that Ctrl-C ended.
const exitInterrupted = exitSignal + 2

type exitCode struct {
	code    string
	meaning string
}

func exitCodes() []exitCode {
	return []exitCode{
		{strconv.Itoa(exitOK), "it worked; with run: the job succeeded"},
		{strconv.Itoa(exitFailure), "it did not work; with run: the run was missed or cancelled, or failed without a code of its own"},
		{strconv.Itoa(exitChanges), "plan found changes"},
		{strconv.Itoa(exitUsage), "the command line is wrong"},
		{strconv.Itoa(exitUnavailable), "the server or the database cannot be reached (commands give up within 5 s), or is not ready"},
		{strconv.Itoa(exitBusy), "the lock is busy; with run: skipped because an earlier run is unfinished, or missed behind a lock"},
		{strconv.Itoa(exitLost), "the lock was lost while the command ran, and it was stopped; with run: the run was lost"},
		{strconv.Itoa(exitDenied), "not permitted"},
		{strconv.Itoa(exitConfig), "the configuration is invalid or missing"},
		{strconv.Itoa(exitTimedOut), "timed out"},
		{strconv.Itoa(exitNotExecutable), "the command cannot be executed"},
		{strconv.Itoa(exitNotFound), "the command was not found"},
		{fmt.Sprintf("%d+n", exitSignal), "ended by signal n"},
		{"other", "with run and lock: the code of the job or the command"},
	}
}

func exitCodesText() string {
	var b strings.Builder
	b.WriteString("Exit codes:\n")
	for _, c := range exitCodes() {
		fmt.Fprintf(&b, "  %-6s %s\n", c.code, c.meaning)
	}
	return strings.TrimSuffix(b.String(), "\n")
}
