package wire

// ChannelTested says that a test message was taken by a channel.
type ChannelTested struct {
	Channel string `json:"channel"`
}
