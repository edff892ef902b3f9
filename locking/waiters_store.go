package locking

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect"
)

// WakeChannel is the PostgreSQL notification channel of a resource.
func WakeChannel(resource string) string {
	sum := sha256.Sum256([]byte(resource))
	return "cronlatch_" + hex.EncodeToString(sum[:16])
}

// AnnounceWaiter asks whoever releases resource within d to notify WakeChannel(resource): LISTEN first, then announce,
// then try again, so that no release falls between. It is a hint that saves waiting for the next poll: a release behind
// a pooler, an expiry and a connection that was lost notify nobody. SQLite has no notifications, and the call does
// nothing.
func AnnounceWaiter(ctx context.Context, db bun.IDB, resource string, d time.Duration) error {
	if err := ValidateResource(resource); err != nil {
		return err
	}
	if db.Dialect().Name() != dialect.PG {
		return nil
	}
	if _, err := newPostgres(db).exec(ctx, pgWait, resource, units(d, pgUnit)); err != nil {
		return fmt.Errorf("locking: announce a waiter for %q: %w", resource, err)
	}
	return nil
}
