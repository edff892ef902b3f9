package configs

import (
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/cronlatch/cronlatch/internal/resource"
)

func authFields() []field[Auth] {
	return []field[Auth]{
		{
			key: "tokens", doc: "The tokens, by their hashes. `cronlatch token create ID --role ROLE --yaml` prints an item.",
			bind: func(a *Auth) sink { return tokenList{&a.Tokens} },
		},
		{
			key: "token_file", initial: DefaultTokenFile, env: "CRONLATCH_TOKEN_FILE", doc: "Where the admin token is kept that is generated when no token above has the role admin.",
			bind: func(a *Auth) sink { return text{into: &a.TokenFile} },
		},
	}
}

func tokenFields() []field[Token] {
	return []field[Token]{
		{
			key: "id", required: true, doc: "The name of its bearer: 1 to 32 characters of a-z, 0-9 and -.",
			bind: func(t *Token) sink { return text{into: &t.ID, check: checkTokenID, like: tokenID.String()} },
		},
		{
			key: "sha256", required: true, doc: "The SHA-256 of the token, in hex. The token itself is not written here.",
			bind: func(t *Token) sink { return text{into: &t.SHA256, check: checkTokenHash, like: tokenHash.String()} },
		},
		{
			key: "role", required: true, doc: "viewer reads; locker takes and reads locks; operator reads, triggers and pauses; admin may do everything.",
			bind: func(t *Token) sink {
				return choice[string]{into: &t.Role, words: []string{RoleViewer, RoleLocker, RoleOperator, RoleAdmin}}
			},
		},
		{
			key: "prefix", doc: "A locker's locks begin with it; without it, it may lock any name.",
			bind: func(t *Token) sink { return text{into: &t.Prefix, check: checkTokenPrefix} },
		},
		{
			key: "expires_at", doc: "When the token ends, for example 2027-01-31T00:00:00Z. Without it, it does not.",
			bind: func(t *Token) sink { return instant{&t.ExpiresAt} },
		},
	}
}

// authentication is a sink for auth: a word or a map.
type authentication struct{ into *Auth }

const (
	authNone   = "none"
	authTokens = "tokens"
	authShape  = `{tokens: [{id: "ci", sha256: "...", role: "locker"}]}`
)

func (s authentication) read(r *reader, n *node, name string) {
	if n.kind == kindMap {
		s.into.None = false
		group[Auth]{authFields(), s.into, authShape}.read(r, n, name)
		return
	}
	value := n
	if n.kind == kindText {
		if value = r.scalar(n); value == nil {
			return
		}
	}
	if value.kind != kindText || value.text != authNone && value.text != authTokens {
		r.hideBelow(n) // it may be a token
		r.refuse(n, codeChoice, "%s must be %s, %s, or a map such as %s, not %s", name, authNone, authTokens, authShape, n.describeKind())
		return
	}
	s.into.None = value.text == authNone
}

func (authentication) empty() string { return authTokens }

func (s authentication) walk(prefix string, visit func(leaf)) {
	walk(authFields(), s.into, prefix, visit)
}

// tokenList is a sink for tokens.
type tokenList struct{ into *[]Token }

func (tokenList) empty() string { return "[]" }

func (s tokenList) read(r *reader, n *node, name string) {
	if n.kind != kindList {
		r.hideBelow(n)
		r.refuse(n, codeType, `%s must be a list such as [{id: "ci", sha256: "...", role: "locker"}], not %s`, name, n.describeKind())
		return
	}
	var tokens []Token
	lines := map[string]int{}
	for _, item := range n.items {
		if !r.spend() {
			return
		}
		if item.kind != kindMap {
			r.hideBelow(item)
			r.refuse(item, codeType, `an item of %s must be a map such as {id: "ci", sha256: "...", role: "locker"}, not %s`, name, item.describeKind())
			continue
		}
		var t Token
		at := table[Token]{fields: tokenFields(), where: " in " + name, prefix: name + "."}.read(r, item, &t)
		r.checkToken(t, at, lines)
		tokens = append(tokens, t)
	}
	*s.into = tokens
}

// checkToken looks at a token as a whole; lines are those of the ids so far.
func (r *reader) checkToken(t Token, at present, lines map[string]int) {
	if id := at["id"]; t.ID != "" && id != nil {
		if line, twice := lines[t.ID]; twice {
			r.refuse(id, codeConflict, "the id %q is in line %d already; each token has its own", t.ID, line)
		} else {
			lines[t.ID] = id.at.line
		}
		if t.ID == AdminID && t.Role != RoleAdmin && t.Role != "" {
			r.refuse(id, codeConflict, "the id %q is that of the generated admin token; give this one the role admin, or another id", AdminID)
		}
	}
	if t.Prefix != "" && t.Role != RoleLocker && t.Role != "" && at["prefix"] != nil {
		r.refuse(at["prefix"], codeConflict, "a prefix is for the role locker; it does not limit the role %s", t.Role)
	}
}

var (
	tokenID   = regexp.MustCompile(`^[a-z0-9-]{1,32}$`)
	tokenHash = regexp.MustCompile(`^[0-9a-f]{64}$`)

	errTokenID   = errors.New("must be 1 to 32 characters of a-z, 0-9 and -")
	errTokenHash = errors.New("must be 64 hex digits in lower case: the SHA-256 of the token, and not the token itself")
)

func checkTokenID(id string) error {
	if !tokenID.MatchString(id) {
		return errTokenID
	}
	return nil
}

// checkTokenHash does not repeat the text: it may be a token, written here by mistake.
func checkTokenHash(hash string) error {
	if !tokenHash.MatchString(hash) {
		return errTokenHash
	}
	return nil
}

func checkTokenPrefix(prefix string) error {
	var fault *resource.Error
	if err := resource.Validate(prefix + "x"); errors.As(err, &fault) { // a prefix may be a dot or end anywhere
		return fmt.Errorf("begins no name that can be locked: it %s", fault.Message)
	}
	return nil
}

// instant is a sink for a point in time.
type instant struct{ into *time.Time }

func (s instant) read(r *reader, n *node, name string) {
	value, ok := r.text(n, name, false)
	if !ok {
		return
	}
	at, err := time.Parse(time.RFC3339, value.text)
	if err != nil {
		r.refuse(n, codeType, "%s must be a time with its offset, such as 2027-01-31T00:00:00Z, not %s", name, shown(n))
		return
	}
	*s.into = at.UTC()
}
