package notify

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/cronlatch/cronlatch/internal/audit"
	"github.com/cronlatch/cronlatch/internal/failpoint"
	"github.com/cronlatch/cronlatch/jobs"
	"github.com/cronlatch/cronlatch/scheduler"
)

const (
	lookEvery   = time.Second // for messages to send
	giveUpEvery = time.Minute // for messages that nobody can send
	opTimeout   = 5 * time.Second
	maxPings    = 8 // at a time

	firstPause   = 30 * time.Second // after the first try; each further one doubles it
	longestPause = time.Hour
	apart        = 2 * scheduler.OutboxQuiet // between the halves of a parcel that was refused

	// lastTry is how long a try may go on when the replica leaves.
	lastTry = time.Second
)

// Options are what a Sender needs. All fields are required.
type Options struct {
	Outbox   *scheduler.Outbox
	Channels func() map[string]jobs.Channel // as the configuration is now; several goroutines call it
	Jobs     func() []*jobs.Job
	Check    func(ctx context.Context) error // an error counts as a database that does not answer
	Replica  string
	Nonce    string        // unique to this process
	Lease    time.Duration // scheduler.OutboxLease of the fleet's lock TTL
	Log      *zap.Logger
	Audit    *zap.Logger
}

// Sender sends what is in the outbox, as far as this replica knows where to.
type Sender struct {
	o     Options
	send  func(ctx context.Context, ch *jobs.Channel, messages []scheduler.Message) error
	ping  func(ctx context.Context, j *jobs.Job, m *scheduler.Message) error
	pings atomic.Int64 // that are being sent
	away  bool         // the database did not answer when it was asked last
}

// NewSender returns a sender that is not running yet.
func NewSender(o Options) *Sender {
	return &Sender{
		o: o, send: courier{}.send,
		ping: func(ctx context.Context, j *jobs.Job, m *scheduler.Message) error {
			return ping(ctx, j, m.Event, m.RunID, m.Occurrence)
		},
	}
}

// Run sends until ctx ends; what is being sent then gets a moment to come to its end.
func (s *Sender) Run(ctx context.Context) {
	sending, cut := context.WithCancel(context.WithoutCancel(ctx))
	defer cut()
	// Not stopped before all are back: that could come before it has begun, and then nothing cuts what hangs.
	defer context.AfterFunc(ctx, func() { time.AfterFunc(lastTry, cut) })()
	var wg sync.WaitGroup
	defer wg.Wait()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	giveUp := time.NewTicker(failpoint.Every(giveUpEvery))
	defer giveUp.Stop()
	for {
		s.look(ctx, sending, &wg)
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-giveUp.C:
			s.giveUp(ctx)
		}
	}
}

// can is what this replica can send now.
type can struct {
	scheduler.OutboxSender

	channels map[string]jobs.Channel
	jobs     map[string]*jobs.Job // that have a ping
}

func (s *Sender) can() *can {
	c := &can{channels: s.o.Channels(), jobs: map[string]*jobs.Job{}}
	c.Replica, c.Lease = s.o.Replica, s.o.Lease
	c.Who, c.MaxPings = s.o.Replica+"/"+s.o.Nonce, maxPings-int(s.pings.Load())
	for name := range c.channels {
		c.Channels = append(c.Channels, name)
	}
	for _, j := range s.o.Jobs() {
		if j.Ping != "" {
			c.Pings, c.jobs[j.Name] = append(c.Pings, j.Name), j
		}
	}
	return c
}

// look takes what is due and sends each channel's messages as one, beside those of the others.
func (s *Sender) look(ctx, sending context.Context, wg *sync.WaitGroup) {
	c := s.can()
	if len(c.Channels) == 0 && len(c.Pings) == 0 {
		return
	}
	rows, err := s.claim(ctx, c)
	if err != nil {
		if ctx.Err() == nil && !s.away {
			s.o.Log.Warn("messages cannot be sent: the database does not answer", zap.Error(err))
		}
		s.away = true
		return
	}
	s.away = false
	for _, parcel := range parcels(rows) {
		if parcel[0].Channel == scheduler.PingChannel {
			s.pings.Add(1)
		}
		wg.Go(func() { s.try(sending, c, parcel) })
	}
}

func (s *Sender) claim(ctx context.Context, c *can) ([]scheduler.OutboxRow, error) {
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	if err := s.o.Check(ctx); err != nil {
		return nil, err
	}
	return s.o.Outbox.Claim(ctx, &c.OutboxSender)
}

// parcels are what goes as one: all messages of a channel, in the order in which they came; but each ping alone.
func parcels(rows []scheduler.OutboxRow) [][]scheduler.OutboxRow {
	var list [][]scheduler.OutboxRow
	of := map[string]int{}
	for _, r := range rows {
		n, begun := of[r.Channel]
		if r.Channel == scheduler.PingChannel || !begun {
			of[r.Channel] = len(list)
			list = append(list, []scheduler.OutboxRow{r})
			continue
		}
		list[n] = append(list[n], r)
	}
	return list
}

// try sends one parcel and marks it.
func (s *Sender) try(ctx context.Context, c *can, parcel []scheduler.OutboxRow) {
	failpoint.Hit("sending")
	release := s.keep(ctx, c, parcel)
	err := s.deliver(ctx, c, parcel)
	release()
	failpoint.Hit("sent")
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), opTimeout)
	defer cancel()
	if partly, ok := errors.AsType[*partlyError](err); ok {
		s.o.Log.Warn("a message did not reach everybody", zap.String("channel", parcel[0].Channel), zap.Error(partly))
		err = nil
	}
	if err == nil {
		s.sent(ctx, parcel)
		return
	}
	s.failed(ctx, c, parcel, err)
}

// keep renews the lease of a parcel until release is called. A renewal that fails is the next one's to make good: at worst
// another sender sends the parcel too.
func (s *Sender) keep(ctx context.Context, c *can, parcel []scheduler.OutboxRow) (release func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		beat := time.NewTicker(c.Lease / 3)
		defer beat.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-beat.C:
			}
			if err := s.o.Outbox.Renew(ctx, &c.OutboxSender, idsOf(parcel)); err != nil && ctx.Err() == nil {
				s.o.Log.Debug("messages that are being sent could not be kept", zap.Error(err))
			}
		}
	})
	return func() { cancel(); wg.Wait() }
}

func (s *Sender) deliver(ctx context.Context, c *can, parcel []scheduler.OutboxRow) error {
	first := &parcel[0]
	if first.Channel == scheduler.PingChannel {
		defer s.pings.Add(-1)
		return s.ping(ctx, c.jobs[first.Job], &first.Message)
	}
	messages := make([]scheduler.Message, len(parcel))
	for i := range parcel {
		messages[i] = parcel[i].Message
	}
	ch := c.channels[first.Channel]
	return s.send(ctx, &ch, messages)
}

// sent marks what has arrived. When that fails, it is sent again after the lease.
func (s *Sender) sent(ctx context.Context, parcel []scheduler.OutboxRow) {
	if err := s.o.Outbox.Sent(ctx, parcel); err != nil {
		s.o.Log.Warn("messages were sent, but that could not be noted: they are sent again",
			zap.String("channel", parcel[0].Channel), zap.Error(err))
	}
}

func idsOf(parcel []scheduler.OutboxRow) []int64 {
	ids := make([]int64, len(parcel))
	for i := range parcel {
		ids[i] = parcel[i].ID
	}
	return ids
}

func (s *Sender) failed(ctx context.Context, c *can, parcel []scheduler.OutboxRow, why error) {
	s.o.Log.Warn("a message could not be sent", zap.String("channel", parcel[0].Channel), audit.Job(parcel[0].Job),
		zap.Int("messages", len(parcel)), zap.Int("attempt", parcel[0].Attempts), zap.Error(why))
	for i, piece := range pieces(parcel, why) {
		f := scheduler.OutboxFailure{Parcel: piece, Again: pause(piece[0].Attempts), Why: why.Error()} // the oldest decides when
		if refused, ok := errors.AsType[*refusedError](why); ok {
			f.Again, f.Quiet = max(f.Again, refused.wait), refused.wait
		}
		f.Again += time.Duration(i) * apart
		given, err := s.o.Outbox.Failed(ctx, &c.OutboxSender, &f)
		if err != nil {
			s.o.Log.Warn("that a message could not be sent was not noted: it is tried again", zap.Error(err))
		}
		s.gaveUp(given, why.Error())
	}
}

// pieces is what goes together the next time. When it may be one message for which all were refused, the halves go apart, so
// that the others do not have its fate.
func pieces(parcel []scheduler.OutboxRow, why error) [][]scheduler.OutboxRow {
	refused, ok := errors.AsType[*refusedError](why)
	if !ok || !refused.content || len(parcel) == 1 {
		return [][]scheduler.OutboxRow{parcel}
	}
	return [][]scheduler.OutboxRow{parcel[:len(parcel)/2], parcel[len(parcel)/2:]}
}

// pause is how long to wait after the n-th try: from 30 s up to an hour, and a fifth of it less at random.
func pause(n int) time.Duration {
	d := longestPause
	if n < 8 { // 30 s doubled seven times is more than an hour
		d = min(firstPause<<max(n-1, 0), longestPause)
	}
	return d - rand.N(d/5)
}

// giveUp ends the wait of what no replica can send.
func (s *Sender) giveUp(ctx context.Context) {
	c := s.can()
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	if err := s.o.Check(ctx); err != nil {
		return // look says so
	}
	given, err := s.o.Outbox.GiveUp(ctx, &c.OutboxSender)
	if err != nil && ctx.Err() == nil {
		s.o.Log.Warn("messages that nobody can send could not be given up", zap.Error(err))
	}
	s.gaveUp(given, "no replica has known the channel for a day")
}

func (s *Sender) gaveUp(given []scheduler.OutboxRow, why string) {
	for i := range given {
		g := &given[i]
		s.o.Log.Warn("a message was given up: nobody hears of it", zap.String("channel", g.Channel), audit.Job(g.Job),
			zap.String("event", string(g.Message.Event)), zap.String("message", g.Message.ID), zap.String("why", why))
		audit.Log(s.o.Audit, audit.NotifyGiveUp, audit.Failure, audit.Actor(audit.ActorReplica, s.o.Replica), audit.Replica(s.o.Replica),
			audit.Job(g.Job), audit.RunID(g.Message.RunID), audit.Reason(why))
	}
}
