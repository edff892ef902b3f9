package mask_test

import (
	"encoding/base64"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/cronlatch/cronlatch/internal/mask"
)

// through gives the pieces to a masker and returns all that came out, and how much of it before Flush.
func through(texts [][]byte, pieces ...string) (all string, before int) {
	m := mask.New(texts)
	emit := func(b []byte) { all += string(b) }
	for _, p := range pieces {
		m.Write([]byte(p), emit)
	}
	before = len(all)
	m.Flush(emit)
	return all, before
}

func TestSecretsAreHidden(t *testing.T) {
	t.Parallel()
	secret := "s3cr3t/p wd"
	texts := mask.Forms([]string{secret})
	for in, want := range map[string]string{
		"a " + secret + " b" + secret: "a *** b***",
		secret + secret:               "******",
		url.QueryEscape(secret) + ";" + url.PathEscape(secret):  "***;***",
		base64.StdEncoding.EncodeToString([]byte(secret)) + ".": "***.",
		secret[:len(secret)-1]:                                  secret[:len(secret)-1],
		"s3cr3t/s3cr3t/p wd":                                    "s3cr3t/***",
		"":                                                      "",
	} {
		whole, _ := through(texts, in)
		assert.Equal(t, want, whole)
		pieces := []string{}
		for i := range len(in) {
			pieces = append(pieces, in[i:i+1])
		}
		split, _ := through(texts, pieces...)
		assert.Equal(t, want, split, "byte by byte")
	}
}

func TestALineIsNotHeldBack(t *testing.T) {
	t.Parallel()
	texts := [][]byte{[]byte("password"), []byte("password1234")}
	out, before := through(texts, "step 1\n")
	assert.Equal(t, len(out), before)
	out, before = through(texts, "the password")
	assert.Equal(t, "the ***", out)
	assert.Equal(t, len("the "), before, "it may be the longer one")
	out, _ = through(texts, "the password", "123", "4 and more")
	assert.Equal(t, "the *** and more", out)
	out, _ = through(texts, "the password", "12", "5")
	assert.Equal(t, "the ***125", out)
}

func TestShortTextsStay(t *testing.T) {
	t.Parallel()
	assert.Empty(t, mask.Forms([]string{"", "abc", "     a "}))
	assert.Nil(t, mask.New([][]byte{[]byte("abc")}))
	out, before := through(nil, "abc")
	assert.Equal(t, "abc", out)
	assert.Equal(t, 3, before)
	assert.Contains(t, mask.Forms([]string{"secret\n"}), []byte("secret"))
}

// However the stream is cut, the same comes out, and no secret is in it.
func TestCutsDoNotMatter(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		letters := rapid.StringOfN(rapid.RuneFrom([]rune("ab")), mask.Shortest, mask.Shortest+3, -1)
		var texts [][]byte
		for _, s := range rapid.SliceOfN(letters, 1, 4).Draw(t, "secrets") {
			texts = append(texts, []byte(s))
		}
		pieces := rapid.SliceOf(rapid.StringOfN(rapid.RuneFrom([]rune("abc")), 0, 30, -1)).Draw(t, "pieces")
		whole := strings.Join(pieces, "")
		want, _ := through(texts, whole)
		got, _ := through(texts, pieces...)
		require.Equal(t, want, got)
		for _, s := range texts {
			require.NotContains(t, got, string(s))
		}
	})
}
