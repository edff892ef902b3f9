package migrations

import (
	"context"

	"github.com/uptrace/bun"
)

// Schema lets the tests with a database, which live outside the package, play with the set of files.
type Schema struct{ s *schema }

func SchemaOf(db *bun.DB) (Schema, error) {
	s, err := schemaOf(db)
	return Schema{s}, err
}

// Replace makes content the file number version, the last one; later ones are dropped.
func (s Schema) Replace(version int, name, content string) {
	s.s.files = append(s.s.files[:version-1:version-1], newFile(version, name, []byte(content)))
}

// Keep drops the files after number version.
func (s Schema) Keep(version int) { s.s.files = s.s.files[:version] }

// OnApplied calls f inside the transaction, after each file.
func (s Schema) OnApplied(f func(name string)) { s.s.applied = func(done file) { f(done.name) } }

func (s Schema) Up(ctx context.Context, db *bun.DB) error    { return s.s.up(ctx, db) }
func (s Schema) Check(ctx context.Context, db *bun.DB) error { return s.s.check(ctx, db) }

func (s Schema) Status(ctx context.Context, db *bun.DB) ([]Migration, error) {
	return s.s.status(ctx, db)
}
