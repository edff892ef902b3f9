package auth

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// AdminID is the id of the generated admin token.
const AdminID = "admin"

// AdminState is where the generated admin token is.
type AdminState int

// What EnsureAdmin found.
const (
	AdminCreated   AdminState = iota // just now, by us
	AdminHere                        // in our file
	AdminElsewhere                   // another replica was first, and its file has it
	AdminRevoked                     // on purpose: none is made instead
)

// AdminToken is the generated admin token as one replica sees it.
type AdminToken struct {
	State AdminState
	Token string // to be shown once; "" unless State is AdminCreated
	Loose bool   // others on this machine can read our file
}

// EnsureAdmin makes sure that the database knows an admin token, so that a fresh fleet can be used and is open to nobody
// else. The replica that is first makes it and keeps it in the file at path; the database keeps its hash, and there the
// first one wins. A replica that lost takes its own file away again. Its name is for the audit.
//
// The file comes before the row: after a crash in between, the next start finds the file and enters its token. An
// error of the file wraps ErrFile; all others are the database's.
func EnsureAdmin(ctx context.Context, s *Store, path, replica string) (AdminToken, error) {
	row, err := s.admin(ctx)
	if err != nil {
		return AdminToken{}, err
	}
	if row != nil {
		return compare(row, path), nil
	}
	return makeAdmin(ctx, s, path, replica)
}

// makeAdmin is EnsureAdmin after no row was found; others may have made one since then.
func makeAdmin(ctx context.Context, s *Store, path, replica string) (AdminToken, error) {
	token, created, err := tokenIn(path)
	if err != nil {
		return madeMeanwhile(ctx, s, path, err)
	}
	err = s.Create(ctx, Creation{ID: AdminID, Hash: Hash(token), Role: Admin, Actor: replica, replica: true})
	if err != nil && !errors.Is(err, ErrExists) {
		return AdminToken{}, err // the file stays: whether the row is there shows next time
	}
	row, err := s.admin(ctx)
	if err != nil {
		return AdminToken{}, err
	}
	if row == nil {
		return AdminToken{}, errors.New("auth: the row of the admin token is gone at once")
	}
	won := sameHash(token, row.Hash)
	switch {
	case won && created:
		return AdminToken{State: AdminCreated, Token: token}, nil
	case !won && created:
		if err := removeFile(path, token); err != nil {
			return AdminToken{}, fmt.Errorf("%w: another replica was first: %w", ErrFile, err)
		}
	}
	return compare(row, path), nil
}

// madeMeanwhile answers for a file that cannot be used. It matters only while there is no row: a file that was there and
// is gone belonged to a replica beside us that lost, and took it away after it had seen the row.
func madeMeanwhile(ctx context.Context, s *Store, path string, fileErr error) (AdminToken, error) {
	row, err := s.admin(ctx)
	if err != nil {
		return AdminToken{}, err
	}
	if row == nil {
		return AdminToken{}, fmt.Errorf("%w: %w", ErrFile, fileErr)
	}
	return compare(row, path), nil
}

// admin is the row of the admin token; nil when there is none.
func (s *Store) admin(ctx context.Context) (*Entry, error) {
	snapshot, err := s.Load(ctx)
	if err != nil {
		return nil, err
	}
	for i := range snapshot.Entries {
		if e := &snapshot.Entries[i]; e.ID == AdminID {
			return e, nil
		}
	}
	return nil, nil //nolint:nilnil // there is none
}

// compare says what the row means for the file.
func compare(row *Entry, path string) AdminToken {
	if !row.RevokedAt.IsZero() {
		return AdminToken{State: AdminRevoked}
	}
	token, err := ReadFile(path)
	if err != nil || !sameHash(token, row.Hash) {
		return AdminToken{State: AdminElsewhere}
	}
	info, err := os.Stat(path)
	return AdminToken{State: AdminHere, Loose: err == nil && info.Mode().Perm()&0o077 != 0}
}

// tokenIn is the token in the file, which is made when there is none. Of several who make it at once one succeeds, and
// the others read what it made.
func tokenIn(path string) (token string, created bool, err error) {
	token, err = New(AdminID)
	if err != nil {
		return "", false, err
	}
	err = createFile(path, token)
	if err == nil {
		return token, true, nil
	}
	if !errors.Is(err, fs.ErrExist) {
		return "", false, err
	}
	if token, err = ReadFile(path); err != nil {
		return "", false, err
	}
	if id, _ := ID(token); id != AdminID {
		return "", false, fmt.Errorf("%s holds the token %s, and not one with the id %s", path, id, AdminID)
	}
	return token, false, nil
}
