package database

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// hostList reads the hosts of the URL, else those of host= and port= (or PGHOST and PGPORT), else localhost.
func (u rawURL) hostList(p params) ([]host, error) {
	var list []host
	var err error
	if u.hosts != "" {
		list, err = splitAuthority(u.hosts, p.get("port"))
	} else {
		list, err = splitHosts(p.get("host"), p.get("port"))
	}
	if err != nil {
		return nil, err
	}
	for i := range list {
		h := &list[i]
		if err := checkPort(h.port); err != nil {
			return nil, err
		}
		if h.mode, err = h.defaultMode(p.get("sslmode")); err != nil {
			return nil, err
		}
		if h.mode == sslRequire && p.get("sslrootcert") != "" {
			h.mode = sslVerifyCA // as in libpq: who names a root certificate wants it to count
		}
	}
	return list, nil
}

// splitAuthority reads host1:port1,[::1]:port2,%2Fsocket%2Fdir.
func splitAuthority(hosts, defaultPort string) ([]host, error) {
	var list []host
	for entry := range strings.SplitSeq(hosts, ",") {
		name, port, err := splitHostPort(entry)
		if err != nil {
			return nil, err
		}
		if name, err = url.PathUnescape(name); err != nil || strings.ContainsAny(name, "\x00@ ") {
			return nil, errors.New("a host of the URL is not percent-encoded text")
		}
		if name == "" {
			name = "localhost"
		}
		if port == "" {
			port = firstPort(defaultPort)
		}
		list = append(list, host{name: name, port: port})
	}
	return list, nil
}

func splitHostPort(entry string) (name, port string, err error) {
	if !strings.HasPrefix(entry, "[") {
		name, port, _ = strings.Cut(entry, ":")
		if strings.Contains(port, ":") {
			return "", "", errors.New("an IPv6 address of the URL must stand in brackets: [::1]:5432")
		}
		return name, port, nil
	}
	name, rest, ok := strings.Cut(entry[1:], "]")
	if !ok || (rest != "" && !strings.HasPrefix(rest, ":")) {
		return "", "", errors.New("an IPv6 address of the URL must stand in brackets: [::1]:5432")
	}
	return name, strings.TrimPrefix(rest, ":"), nil
}

// splitHosts reads PGHOST's form: names, addresses and socket directories, with one port for all or one for each.
func splitHosts(hosts, ports string) ([]host, error) {
	if hosts == "" {
		hosts = "localhost"
	}
	names, numbers := strings.Split(hosts, ","), strings.Split(ports, ",")
	if len(numbers) != 1 && len(numbers) != len(names) {
		return nil, fmt.Errorf("%d hosts and %d ports: there must be one port, or one for each host", len(names), len(numbers))
	}
	list := make([]host, len(names))
	for i, name := range names {
		port := numbers[min(i, len(numbers)-1)]
		if name == "" {
			name = "localhost"
		}
		list[i] = host{name: name, port: firstPort(port)}
	}
	return list, nil
}

func firstPort(ports string) string {
	port, _, _ := strings.Cut(ports, ",")
	if port == "" {
		return "5432"
	}
	return port
}

func checkPort(port string) error {
	// The value is not repeated: a password with an unencoded / ends up here.
	if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
		return errors.New("a port must be a number from 1 to 65535 (a user name or password with one of / ? # @ : must " +
			"be percent-encoded)")
	}
	return nil
}
