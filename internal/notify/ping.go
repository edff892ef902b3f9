package notify

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/scheduler"
)

// pingStart is the event of a run that begins.
const pingStart jobs.Event = "start"

// ping tells a URL, as healthchecks.io and others understand it, that a run has begun (URL/start), has succeeded (URL) or has
// failed (URL/fail). rid is the same for the beginning and the end of a run.
func ping(ctx context.Context, j *jobs.Job, e jobs.Event, run int64, occurrence string) error {
	if j.Ping == "" {
		return errors.New("the job has no ping any more")
	}
	target, err := pingURL(j.Ping, e, run, occurrence)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	r := outgoing{method: http.MethodPost, url: target, allowPrivate: j.PingAllowPrivate, hint: "ping_allow_private: true allows it"}
	return r.exchange(ctx)
}

func pingURL(base jobs.Secret, e jobs.Event, run int64, occurrence string) (jobs.Secret, error) {
	target, err := url.Parse(base.Reveal())
	if err != nil {
		return "", errURL
	}
	switch e {
	case pingStart:
		target = target.JoinPath("start")
	case scheduler.PingFail:
		target = target.JoinPath("fail")
	default: // a success is the URL itself
	}
	query := target.Query()
	query.Set("rid", runUUID(run, occurrence))
	target.RawQuery = query.Encode()
	return jobs.Secret(target.String()), nil
}

// runUUID is a UUID (version 8: made from a hash) that every replica computes for a run.
func runUUID(run int64, occurrence string) string {
	h := sha256.Sum256([]byte(strconv.FormatInt(run, 10) + " " + occurrence))
	h[6], h[8] = h[6]&0x0f|0x80, h[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", h[0:4], h[4:6], h[6:8], h[8:10], h[10:16])
}

// retryPause is between the two tries of a ping that a run has begun.
const retryPause = time.Second
