package executor

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/jobs"
)

// TestTheDialerLooksAtTheAddress is about what the socket is about to connect to, whatever the name was.
func TestTheDialerLooksAtTheAddress(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		allow   []string
		address string
		want    bool
	}{
		"public":                       {nil, "1.1.1.1:443", true},
		"loopback":                     {nil, "127.0.0.1:80", false},
		"link-local with a zone":       {nil, "[fe80::1%eth0]:80", false},
		"mapped metadata":              {nil, "[::ffff:169.254.169.254]:80", false},
		"an allowed network":           {[]string{"10.0.0.0/8"}, "10.1.2.3:80", true},
		"a mapped one of the network":  {[]string{"10.0.0.0/8"}, "[::ffff:10.1.2.3]:80", true},
		"a translated one":             {[]string{"10.0.0.0/8"}, "[64:ff9b::10.1.2.3]:80", true},
		"beside the network":           {[]string{"10.0.0.0/8"}, "11.1.2.3:80", true},
		"another private network":      {[]string{"10.0.0.0/8"}, "192.168.0.1:80", false},
		"an allowed host":              {[]string{"svc.example"}, "10.1.2.3:80", true},
		"another host":                 {[]string{"other.example"}, "10.1.2.3:80", false},
		"an allowed address":           {[]string{"fd00::1"}, "[fd00::1]:80", true},
		"a link-local network, zoned":  {[]string{"fe80::/10"}, "[fe80::1%eth0]:80", true},
		"something that is no address": {[]string{"svc.example"}, "/run/socket", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := guarded(&jobs.HTTP{Allow: test.allow}, "svc.example").ControlContext(t.Context(), "tcp", test.address, nil)
			if test.want {
				require.NoError(t, err)
			} else {
				require.Error(t, err)
			}
		})
	}
}
