package configs

import (
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

// listenerFields are the keys about who can reach the HTTP API.
func listenerFields() []field[daemonDraft] {
	return []field[daemonDraft]{
		{
			key: "listen", initial: "127.0.0.1:8420", env: "CRONLATCH_LISTEN", doc: "The address of the HTTP listener: host:port, or unix: and a path.",
			bind: func(d *daemonDraft) sink { return text{into: &d.Listen, check: checkAddress} },
		},
		{
			key: "auth", env: "CRONLATCH_AUTH", doc: "Who may call the HTTP API: a map of tokens, or none: everybody who can reach it. Without the key, or as the word tokens, a generated admin token.",
			bind: func(d *daemonDraft) sink { return authentication{&d.Auth} },
		},
		{
			key: "tls", doc: "The certificate of the listener, read again when the files change.",
			bind: func(d *daemonDraft) sink { return group[TLS]{tlsFields(), &d.TLS, `{cert: "tls.crt", key: "tls.key"}`} },
		},
		{
			key: "behind_proxy", initial: "false", env: "CRONLATCH_BEHIND_PROXY", doc: "true when a proxy in front of the listener ends TLS.",
			bind: func(d *daemonDraft) sink { return boolean{&d.BehindProxy} },
		},
		{
			key: "allowed_hosts", doc: "Host names that requests may ask for, beside those of loopback. Empty is all on an address that others can reach, and loopback's alone elsewhere.",
			bind: func(d *daemonDraft) sink { return hostList{&d.AllowedHosts} },
		},
	}
}

func tlsFields() []field[TLS] {
	return []field[TLS]{
		{
			key: "cert", env: "CRONLATCH_TLS_CERT", doc: "The file with the certificate and its chain, in PEM form.",
			bind: func(t *TLS) sink { return text{into: &t.Cert} },
		},
		{
			key: "key", env: "CRONLATCH_TLS_KEY", doc: "The file with its private key.",
			bind: func(t *TLS) sink { return text{into: &t.Key} },
		},
	}
}

// checkTLS wants both files or none, whether they are named in the file, the environment or by flags.
func (r *reader) checkTLS(c *Config, n *node) {
	have, missing := "cert", "key"
	if c.TLS.Cert == "" {
		have, missing = missing, have
	}
	if n == nil {
		n = &node{from: flagName("tls." + have)}
	}
	switch {
	case (c.TLS.Cert == "") != (c.TLS.Key == ""):
		r.refuse(n, codeRequired, "tls.%s is set and tls.%s is not; a listener needs both", have, missing)
	case c.TLS.Enabled() && strings.HasPrefix(c.Listen, "unix:"):
		r.refuse(n, codeConflict, "a Unix socket speaks no TLS; remove tls, or listen on host:port")
	}
}

func checkAddress(address string) error {
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		if path == "" || strings.HasSuffix(path, "/") {
			return addressProblem(address, "write unix: and a path, for example unix:/run/cronlatch.sock")
		}
		return nil
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return addressProblem(address, "write host:port, for example 127.0.0.1:8420 or [::1]:8420")
	}
	if number, err := strconv.Atoi(port); err != nil || number < 0 || number > 65535 {
		return addressProblem(address, "the port must be a number from 0 to 65535")
	}
	if strings.ContainsAny(host, " /") {
		return addressProblem(address, "the host must be a name or an address, without scheme and path")
	}
	return nil
}

func addressProblem(address, wayOut string) error {
	return &partError{code: codeListen, message: fmt.Sprintf("%q is not an address to listen on: %s", abbreviate(address), wayOut)}
}

// hostList is a sink for the names of hosts.
type hostList struct{ into *[]string }

func (s hostList) read(r *reader, n *node, name string) {
	var hosts []string
	var nodes []*node
	list{into: &hosts, nodes: &nodes}.read(r, n, name)
	for i, host := range hosts {
		if !isHost(host) {
			r.refuse(nodes[i], codeHost, "an item of %s must be a name or an address without scheme and port, such as locks.example.com, not %s", name, shown(nodes[i]))
		}
	}
	*s.into = hosts
}

var hostName = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*$`)

func isHost(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil || len(host) <= 253 && hostName.MatchString(host)
}
