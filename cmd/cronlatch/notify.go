package main

import (
	"context"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/cronlatch/cronlatch/internal/notify"
	"github.com/cronlatch/cronlatch/internal/output"
	"github.com/cronlatch/cronlatch/internal/wire"
)

func (a *app) notifyCommand() *cobra.Command {
	return groupCommand("notify", "Try the channels that hear of runs", "  $ cronlatch notify test ops", a.notifyTestCommand())
}

func (a *app) notifyTestCommand() *cobra.Command {
	var server string
	var format output.Format
	cmd := &cobra.Command{
		Use:   "test CHANNEL",
		Short: "Send a test message to a channel now",
		Long: "notify test sends a message with the event test to a channel of the configuration, and says what the other side\n" +
			"answered. With --server the daemon there sends it, with its own configuration, and an admin's token is needed; without,\n" +
			"this process does. It is tried once and waits for nothing.",
		Example: "  $ cronlatch notify test ops\n  $ cronlatch notify test ops --server http://127.0.0.1:8420",
		Args:    oneArg("the name of a channel"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context() // it may take longer than the patience with one call
			return a.withAPI(ctx, server, func(_ context.Context, c *api) error {
				return a.testChannel(ctx, c, args[0], format)
			})
		},
	}
	addServer(cmd, &server)
	addOutput(cmd, &format, output.Table, output.JSON, output.YAML)
	return cmd
}

// channelTester sends to the channels of the configuration; nil when none can be read.
func (a *app) channelTester() func(ctx context.Context, name, actor string) error {
	config, err := a.loadConfig()
	if err != nil {
		return nil
	}
	return func(ctx context.Context, name, actor string) error {
		return notify.Test(ctx, config.Channels, name, "", actor)
	}
}

// testChannel waits longer than for other answers: it is the other side's that comes back. The server bounds it.
func (a *app) testChannel(ctx context.Context, c *api, name string, format output.Format) error {
	var done wire.ChannelTested
	err := c.call(ctx, http.MethodPost, "/channels/"+url.PathEscape(name)+"/test", nil, nil, &done)
	if isProblem(err, "no_route") {
		return fail(exitConfig, "there is no configuration here that has channels").
			withHint("run it beside the daemon's file, or name a daemon with --server")
	}
	if err != nil {
		return err
	}
	return output.WriteValue(a.answer(format), done, func() []string { return []string{"sent to " + output.Clean(done.Channel)} })
}
