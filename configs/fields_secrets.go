package configs

import (
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/cronlatch/cronlatch/jobs"
)

const secretsShape = `{PGPASSWORD: "${file:/run/secrets/pg}"}`

// secretText is a sink for one text that no message shows: neither what a variable holds nor what the file says.
type secretText struct {
	into  *jobs.Secret
	check func(string) error // its errors do not repeat the text
	like  string             // as in text
}

func (s secretText) read(r *reader, n *node, name string) {
	r.hideBelow(n)
	if n.kind == kindInteger || n.kind == kindFloat || n.kind == kindBool {
		r.refuse(n, codeType, "%s must be text; write it in quotes", name)
		return
	}
	value, ok := r.text(n, name, false)
	switch {
	case !ok:
		return
	case strings.TrimSpace(value.text) == "":
		r.refuse(n, codeEmpty, "%s is empty; give it a value, or remove the key", name)
		return
	}
	if s.check != nil {
		if err := s.check(value.text); err != nil {
			r.refuse(n, codeURL, "%s %s", name, err.Error())
			return
		}
	}
	if s.check == nil && !strings.Contains(n.text, "${") && n.from == "" {
		r.plain = append(r.plain, n)
	}
	*s.into = jobs.Secret(value.text)
}

// hide keeps what is written in a file out of its snippets. A text that only names where the value is can be shown.
func (r *reader) hide(n *node) {
	named := strings.HasPrefix(n.text, "${") && strings.IndexByte(n.text, '}') == len(n.text)-1 && !strings.Contains(n.text, ":-")
	if n.text == "" || named || n.from != "" {
		return
	}
	s := r.sourceOf(n)
	lines := strings.Count(n.text, "\n") + 1
	for line := range strings.SplitSeq(n.text, "\n") { // a block scalar begins on the next line
		if line = strings.TrimSpace(line); line != "" {
			s.hidden = append(s.hidden, hiddenText{line, n.at, n.at.line + lines})
		}
	}
}

// hideBelow hides all values of a node. It is for keys that nobody knows, so an alias is not followed for ever.
func (r *reader) hideBelow(n *node) {
	if !r.spend() {
		return
	}
	switch n.kind {
	case kindList:
		for _, item := range n.items {
			r.hideBelow(item)
		}
	case kindMap:
		for _, p := range n.pairs {
			r.hideBelow(p.value)
		}
	case kindNull:
		if s := r.sourceOf(n); n.loose && n.from == "" { // an alias of nothing
			s.hidden = append(s.hidden, hiddenText{"", n.at, n.at.line})
		}
	default:
		r.hide(n)
	}
}

// hideAll hides what a map has under a key, more than once by mistake.
func (r *reader) hideAll(n *node, key string) {
	for _, p := range slices.Concat(n.pairs, n.again) {
		if p.key.text == key {
			r.hideBelow(p.value)
		}
	}
}

// secretMap is a sink for secrets by the name of their environment variable.
type secretMap struct{ into *map[string]jobs.Secret }

func (secretMap) empty() string { return "{}" }

func (s secretMap) read(r *reader, n *node, name string) {
	if n.kind != kindMap {
		r.hideBelow(n)
		r.refuse(n, codeType, `%s must be a map such as %s`, name, secretsShape)
		return
	}
	all := make(map[string]jobs.Secret, len(*s.into)+len(n.pairs))
	maps.Copy(all, *s.into)
	for _, p := range n.pairs {
		if !r.spend() {
			return
		}
		if p.key.kind != kindText {
			continue // reported with the tree
		}
		if err := checkVariableName(p.key.text); err != nil {
			r.refuse(p.key, codeEnv, "%s", err.Error())
			continue
		}
		if p.value.kind == kindNull {
			r.hide(p.key) // which may be what should be the value
			r.refuse(p.key, codeEmpty, "a name in %s has no value; give it one, or remove it", name)
			continue
		}
		var value jobs.Secret
		secretText{into: &value}.read(r, p.value, name+"."+abbreviate(p.key.text))
		all[p.key.text] = value
	}
	*s.into = all
}

// checkSecrets wants each variable to have one value. env from defaults may be the same name: the secret goes before it.
func (r *reader) checkSecrets(d *jobDraft) {
	env, secrets := d.at["env"], d.at["secrets"]
	if env == nil || secrets == nil || env.kind != kindMap || secrets.kind != kindMap {
		return
	}
	for _, p := range secrets.pairs {
		if other := keyOf(env, p.key.text); p.key.kind == kindText && other != env {
			r.refuse(p.key, codeConflict, "%s has %s in env (line %d) and in secrets; remove it from env", d.title(), abbreviate(p.key.text), other.at.line)
		}
	}
}

// fingerprints tell one secret from another without saying what it is. A hash is shown to everybody who may see the fleet,
// and a secret may be a word of a dictionary, so each guess is made to cost as much as thousands.
type fingerprints map[jobs.Secret]string

const fingerprintRounds = 4096

func (f fingerprints) of(s jobs.Secret) string {
	if s == "" {
		return ""
	}
	if f[s] == "" {
		// The salt may be the same everywhere: equal secrets must give equal hashes on all replicas.
		key, err := pbkdf2.Key(sha256.New, s.Reveal(), []byte("cronlatch definition"), fingerprintRounds, sha256.Size)
		if err != nil {
			panic(err) // lengths and rounds are constants that it accepts
		}
		f[s] = hex.EncodeToString(key)
	}
	return f[s]
}

func (f fingerprints) ofAll(secrets map[string]jobs.Secret) []string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(secrets)) {
		list = append(list, name, f.of(secrets[name]))
	}
	return list
}

// urlError is what is wrong with an address, without the address: it may hold a token.
type urlError string

func (e urlError) Error() string { return string(e) }

const (
	errHTTPURL = urlError("must be an absolute URL such as https://example.com/path")

	httpURLPattern = "^[Hh][Tt][Tt][Pp][Ss]?://"
)

func checkHTTPURL(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Fragment != "" {
		return errHTTPURL
	}
	return nil
}

func (s secretText) schema() *schema {
	if s.like == "" {
		return textSchema()
	}
	return replaced(patternSchema(s.like))
}

func (secretMap) schema() *schema {
	return mapSchema(dictionary{}.schema().PropertyNames, textSchema())
}
