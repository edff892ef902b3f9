package fleet

import "context"

// postgresBusy counts the connections of a replica that are in the middle of something.
const postgresBusy = `SELECT count(*) FROM pg_stat_activity
	WHERE datname = current_database() AND application_name = ? AND state <> 'idle'`

// postgresIdle reports whether a replica that is frozen holds no transaction open.
func (f *Fleet) postgresIdle(ctx context.Context, r *Replica) bool {
	var busy int
	err := f.DB.Main.NewRaw(postgresBusy, "cronlatch/"+r.Name).Scan(ctx, &busy)
	return err == nil && busy == 0
}
