package auth

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func mustNew(t *testing.T, id string) string {
	t.Helper()
	token, err := New(id)
	require.NoError(t, err)
	return token
}

func TestNew(t *testing.T) {
	t.Parallel()
	one, two := mustNew(t, "ci-1"), mustNew(t, "ci-1")
	assert.NotEqual(t, one, two)
	assert.Regexp(t, `^cl_ci-1_[A-Za-z0-9_-]{43}$`, one)
	secret, err := base64.RawURLEncoding.DecodeString(one[len("cl_ci-1_"):])
	require.NoError(t, err)
	assert.Len(t, secret, 32, "256 bit")
	id, ok := ID(one)
	assert.True(t, ok)
	assert.Equal(t, "ci-1", id)

	for _, id := range []string{"", "A", "a_b", "a b", "ä", strings.Repeat("a", 33), "a\n"} {
		_, err := New(id)
		require.ErrorIs(t, err, ErrID, id)
	}
}

// Hashes are in configuration files: `printf %s TOKEN | sha256sum` makes them.
func TestHashIsSHA256InHex(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", Hash("abc"))
}

func TestTextsThatAreNoTokens(t *testing.T) {
	t.Parallel()
	good := mustNew(t, "a")
	secret := good[len("cl_a_"):]
	for _, text := range []string{
		"", "cl_", "cl_a", "cl_a_", "cl__" + secret, "CL_a_" + secret, "cl_A_" + secret, " " + good, good + " ", good + "\n", good + "A",
		good[:len(good)-1], "cl_a_" + strings.Repeat("!", 43), "cl_a_" + strings.Repeat("A", 42) + "=", "a_" + secret,
		"cl_" + strings.Repeat("a", 33) + "_" + secret,
		"cl_a_" + strings.Repeat("A", 40) + "\n\r\n", // line breaks that the decoder skips
		"cl_a_" + strings.Repeat("A", 42) + "B",      // its last bits are not zero: a second text for the same secret
	} {
		_, ok := ID(text)
		assert.False(t, ok, "%q", text)
	}
}

func TestSameHash(t *testing.T) {
	t.Parallel()
	assert.True(t, sameHash("a", Hash("a")))
	for _, hash := range []string{"", Hash("b"), Hash("a")[:63], strings.ToUpper(Hash("a")), "a"} {
		assert.False(t, sameHash("a", hash), hash)
	}
	assert.False(t, sameHash("", ""))
}

func TestRoles(t *testing.T) {
	t.Parallel()
	for _, r := range Roles() {
		assert.True(t, r.valid())
	}
	assert.False(t, Role("").valid())
	assert.False(t, Role("root").valid())

	assert.True(t, Principal{Role: Admin}.Covers("x"))
	assert.True(t, Principal{Role: Locker}.Covers("x"))
	assert.True(t, Principal{Role: Locker, Prefix: "a:"}.Covers("a:b"))
	assert.False(t, Principal{Role: Locker, Prefix: "a:"}.Covers("A:b"))
	assert.False(t, Principal{Role: Viewer}.Covers("x"))
	assert.False(t, Principal{Role: Operator}.Covers("x"))
	assert.False(t, Principal{}.Covers("x"))
}

// FuzzID: whatever arrives in a header, a text that has the form of a token has the one form of its id and secret.
func FuzzID(f *testing.F) {
	f.Add("cl_ci-1_" + strings.Repeat("A", secretText))
	f.Add("cl_a_" + strings.Repeat("A", secretText-3) + "\n\n\n")
	f.Add("cl__")
	f.Add("cl_a_\x00")
	f.Fuzz(func(t *testing.T, text string) {
		id, ok := ID(text)
		if !ok {
			return
		}
		secret, err := base64.RawURLEncoding.Strict().DecodeString(strings.TrimPrefix(text, "cl_"+id+"_"))
		require.NoError(t, err)
		assert.Len(t, secret, secretBytes)
		assert.Regexp(t, idForm, id)
		assert.Equal(t, text, "cl_"+id+"_"+base64.RawURLEncoding.EncodeToString(secret))
	})
}
