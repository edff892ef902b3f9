package pgserver

import (
	"context"
	"path/filepath"
)

// Template makes a second, untouched data directory beside the server's own and returns the environment entry that lets
// Start copy it instead of running initdb. It disappears with the server.
func (s *Server) Template(ctx context.Context) (string, error) {
	dir := filepath.Join(s.folder.root, "template")
	return templateEnv + "=" + dir, s.folder.initdb(ctx, dir)
}
