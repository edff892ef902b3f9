package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"regexp"
	"strings"
)

// The text of a token is cl_<id>_<secret>. The prefix lets scanners of source code find one that got there by mistake.
const (
	tokenPrefix = "cl_"
	secretBytes = 32
	secretText  = 43 // of secretBytes in base64url without padding
)

// ErrID says that a token cannot have this id.
var ErrID = errors.New("auth: an id is 1 to 32 characters of a-z, 0-9 and -")

var (
	idForm   = regexp.MustCompile(`^[a-z0-9-]{1,32}$`)
	hashForm = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// New makes a token with 256 random bits. The text is for its bearer alone; everybody else keeps Hash of it.
func New(id string) (string, error) {
	if !idForm.MatchString(id) {
		return "", ErrID
	}
	secret := make([]byte, secretBytes)
	_, _ = rand.Read(secret) // never fails: it ends the process instead
	return tokenPrefix + id + "_" + base64.RawURLEncoding.EncodeToString(secret), nil
}

// Hash is what is stored of a token: the SHA-256 of its whole text, in hex. A slow hash would add nothing: 256 random
// bits cannot be guessed.
func Hash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// ID is the public part of a token; false when the text has not the form of one. The secret is not looked at.
func ID(token string) (string, bool) {
	rest, ok := strings.CutPrefix(token, tokenPrefix)
	// An id has no underscore, and a secret may.
	id, secret, found := strings.Cut(rest, "_")
	if !ok || !found || !idForm.MatchString(id) || len(secret) != secretText {
		return "", false
	}
	// The decoder skips line breaks, so the length is looked at again.
	b, err := base64.RawURLEncoding.Strict().DecodeString(secret)
	return id, err == nil && len(b) == secretBytes
}

// sameHash compares in constant time. A hash that is none matches nothing: not even an empty text.
func sameHash(token, hash string) bool {
	return subtle.ConstantTimeCompare([]byte(Hash(token)), []byte(hash)) == 1
}
