package httpapi

import (
	"context"
	"errors"
	"net/http"

	"go.uber.org/zap"

	"github.com/cronlatch/cronlatch/internal/audit"
	"github.com/cronlatch/cronlatch/internal/notify"
	"github.com/cronlatch/cronlatch/internal/wire"
)

const channelTestPath = "/channels/{channel}/test"

func channelsRoute() route {
	return route{http.MethodPost, channelTestPath, accessAdmin, "testChannel", testChannel}
}

// testChannel sends a message now, and answers when the other side has. The channel's URL is no part of the answer.
func testChannel(c *call) error {
	if err := c.noQuery(); err != nil {
		return err
	}
	name := c.segment("channel")
	err := c.o.TestChannel(context.WithoutCancel(c.r.Context()), name, c.actor())
	if unknown, ok := errors.AsType[*notify.UnknownError](err); ok {
		return &problem{Status: http.StatusNotFound, Code: "not_found", Detail: shortened(unknown.Error())}
	}
	outcome := audit.Success
	if err != nil {
		outcome = audit.Failure
	}
	audit.Log(c.audit, audit.ChannelTest, outcome, append(c.auditFields(), zap.String("channel", name))...)
	if err != nil {
		return &problem{Status: http.StatusBadGateway, Code: "not_sent", Detail: "the message was not sent: " + err.Error()}
	}
	writeJSON(c.w, "application/json", http.StatusOK, wire.ChannelTested{Channel: name})
	return nil
}
