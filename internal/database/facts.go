package database

// Host is one server of a Target, for those who judge the way to it.
type Host struct {
	Address  string
	Local    bool   // reached without leaving this machine
	SSLMode  string // as libpq has it
	Verified bool   // somebody in between would be noticed
}

// Hosts are the servers of a PostgreSQL target; none on SQLite.
func (t Target) Hosts() []Host {
	hosts := make([]Host, len(t.pg.hosts))
	for i, h := range t.pg.hosts {
		hosts[i] = Host{h.String(), h.local(), string(h.mode), h.mode.verified()}
	}
	return hosts
}

// NetworkFileSystem names the network file system that a folder is on, "" when it is on none that is known.
func NetworkFileSystem(dir string) (string, error) { return networkFileSystem(dir) }
