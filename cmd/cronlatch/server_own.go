package main

import (
	"cmp"
	"crypto/tls"
	"encoding/pem"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/cronlatch/cronlatch/configs"
)

const defaultListen = "127.0.0.1:8420"

// ownServer is the daemon with the same surroundings: the same file, environment and machine.
func (a *app) ownServer(cacert string) (*server, error) {
	listen, certificate, err := a.ownListener()
	if err != nil {
		return nil, err
	}
	address := listen
	if !strings.HasPrefix(listen, "unix:") {
		address = "http://" + reachable(listen)
		if certificate != "" {
			address = "https://" + reachable(listen)
		}
	}
	s, err := a.connect(address, cacert)
	if err != nil || certificate == "" || cacert != "" || a.Getenv("CRONLATCH_CACERT") != "" {
		return s, err
	}
	// The address is not the name in the certificate, but the certificate itself is known.
	if transport, ok := s.Client.Transport.(*http.Transport); ok {
		transport.TLSClientConfig = pinned(certificate)
	}
	return s, nil
}

// ownListener is where it listens, and the file of its certificate; "" without TLS.
func (a *app) ownListener() (listen, certificate string, err error) {
	path, named := a.configPath()
	env := a.Getenv("CRONLATCH_LISTEN")
	if _, err := os.Stat(path); err != nil && (!named || env != "") {
		return socketBeside(cmp.Or(env, defaultListen), path), a.certificate(nil, path), nil
	}
	config, err := a.loadFile(path)
	switch {
	case err == nil:
		return socketBeside(config.Listen, path), a.certificate(config, path), nil
	case env != "": // a broken file is not the question
		return socketBeside(env, path), a.certificate(nil, path), nil
	default:
		return "", "", err
	}
}

// socketBeside is the address with the path of a socket as the daemon understands it: relative to the configuration.
func socketBeside(listen, config string) string {
	if path, ok := strings.CutPrefix(listen, "unix:"); ok {
		return "unix:" + beside(config, path)
	}
	return listen
}

func (a *app) certificate(c *configs.Config, path string) string {
	file := a.Getenv("CRONLATCH_TLS_CERT")
	if c != nil {
		file = c.TLS.Cert // with the environment laid over it
	}
	if file == "" {
		return ""
	}
	return beside(path, file)
}

var errOtherCertificate = errors.New("it shows another certificate than the one in the configuration")

// pinned trusts exactly the certificate in the file, which the daemon with this configuration shows. It may have been
// replaced a moment ago: then the file is the newer one, and the next check sees the same.
func pinned(file string) *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: true, //nolint:gosec // VerifyConnection compares the certificate itself
		VerifyConnection: func(state tls.ConnectionState) error {
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			block, _ := pem.Decode(text)
			if block == nil || len(state.PeerCertificates) == 0 || !slices.Equal(block.Bytes, state.PeerCertificates[0].Raw) {
				return errOtherCertificate
			}
			return nil
		},
	}
}

// reachable is an address to connect to for one to listen on: 0.0.0.0 and an empty host are every address.
func reachable(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return listen
	}
	if addr, err := netip.ParseAddr(host); host == "" || err == nil && addr.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}
