package main

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/cronlatch/cronlatch/internal/auth"
)

// printForConfig makes a token and prints what belongs into a configuration. The token itself goes to stderr: stdout may be
// on its way into a file that others read.
func (a *app) printForConfig(t newToken) error {
	token, err := auth.New(t.id)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprint(a.Stdout, configItem(t, auth.Hash(token), a.Now())); err != nil {
		return err
	}
	a.say("the token, shown this once: %s", token)
	a.say("put the item under auth.tokens in the configuration of every replica, and restart them")
	return nil
}

// configItem is one item of auth.tokens. What the user gave is in double quotes, whose escapes JSON and YAML share; a dollar
// would begin a replacement.
func configItem(t newToken, hash string, now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "- id: %q\n  sha256: %q\n  role: %s\n", t.id, hash, t.role)
	if t.prefix != "" {
		fmt.Fprintf(&b, "  prefix: %s\n", strings.ReplaceAll(strconv.Quote(t.prefix), "$", "$$"))
	}
	if t.life > 0 {
		fmt.Fprintf(&b, "  expires_at: %q\n", now.Add(t.life).UTC().Format(time.RFC3339))
	}
	return b.String()
}
