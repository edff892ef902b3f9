package httpapi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

const (
	maxBodyBytes = 64 << 10
	maxBodyDepth = 64
)

// members are the fields of a body as they were sent.
type members map[string]jsontext.Value

// body reads the request's JSON object. Nothing is guessed: what two readers could understand differently (a name twice,
// another case, text after the end, broken UTF-8) is refused.
func (c *call) body(known ...string) (members, error) {
	if err := jsonContent(c.r.Header); err != nil {
		return nil, err
	}
	text, err := c.readBody()
	if err != nil {
		return nil, err
	}
	return parseBody(text, known)
}

// jsonContent wants one Content-Type, application/json, and no encoding around it. A browser's form cannot say that.
func jsonContent(h http.Header) error {
	refused := &problem{Status: http.StatusUnsupportedMediaType, Code: "content_type", Detail: "the body must be JSON: Content-Type: application/json"}
	types, encodings := h.Values("Content-Type"), h.Values("Content-Encoding")
	if len(types) != 1 || len(encodings) > 1 || len(encodings) == 1 && !strings.EqualFold(encodings[0], "identity") {
		return refused
	}
	kind, params, err := mime.ParseMediaType(types[0])
	if err != nil || kind != "application/json" {
		return refused
	}
	for name, value := range params {
		if name != "charset" || !strings.EqualFold(value, "utf-8") {
			return refused
		}
	}
	return nil
}

func (c *call) readBody() ([]byte, error) {
	tooLarge := &problem{
		Status: http.StatusRequestEntityTooLarge, Code: "too_large",
		Detail: fmt.Sprintf("the body may have %d bytes at most", maxBodyBytes),
	}
	if c.r.ContentLength > maxBodyBytes {
		c.w.Header().Set("Connection", "close") // what is still to come will not be read
		return nil, tooLarge
	}
	text, err := io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, maxBodyBytes))
	if _, over := errors.AsType[*http.MaxBytesError](err); over {
		return nil, tooLarge
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, &problem{Status: http.StatusRequestTimeout, Code: "timeout", Detail: "the body did not come in time"}
	}
	if err != nil {
		return nil, malformed("the body ended early")
	}
	return text, nil
}

func malformed(format string, args ...any) *problem {
	return &problem{Status: http.StatusBadRequest, Code: "malformed", Detail: fmt.Sprintf(format, args...)}
}

// parseBody reads one object whose names are all known, and nothing after it.
func parseBody(text []byte, known []string) (members, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, malformed("the body is empty; it must be a JSON object")
	}
	if err := checkSyntax(text); err != nil {
		return nil, err
	}
	d := jsontext.NewDecoder(bytes.NewReader(text))
	if d.PeekKind() != '{' {
		return nil, malformed("the body must be a JSON object")
	}
	got, unknown := members{}, []fieldError(nil)
	_, err := d.ReadToken()
	for err == nil && d.PeekKind() != '}' {
		var name jsontext.Token
		var value jsontext.Value
		if name, err = d.ReadToken(); err != nil {
			break
		}
		key := name.String() // the token is the decoder's until its next step
		if value, err = d.ReadValue(); err != nil {
			break
		}
		got[key] = value.Clone()
		if e, bad := unknownName(key, known); bad && len(unknown) < maxUnknown {
			unknown = append(unknown, e)
		}
	}
	if err != nil { // checkSyntax has seen all of it
		return nil, syntaxProblem(err)
	}
	if unknown != nil {
		p := malformed("the body has fields that this call does not know")
		p.Errors = unknown
		return nil, p
	}
	return got, nil
}

// checkSyntax walks over all tokens once, so that a text is refused as a whole before anything in it is believed.
func checkSyntax(text []byte) error {
	d := jsontext.NewDecoder(bytes.NewReader(text))
	for {
		_, err := d.ReadToken()
		if err == io.EOF { //nolint:errorlint // the decoder returns it bare, between two values only
			return nil
		}
		if err != nil {
			return syntaxProblem(err)
		}
		if d.StackDepth() > maxBodyDepth {
			return malformed("the body is nested more than %d deep", maxBodyDepth)
		}
		if d.StackDepth() == 0 && len(bytes.TrimLeft(text[d.InputOffset():], " \t\r\n")) > 0 {
			return malformed("the body goes on after the JSON object, at byte %d", d.InputOffset()+1)
		}
	}
}

// syntaxProblem says what is wrong and where, without the text itself.
func syntaxProblem(err error) error {
	at := ""
	if s, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		at = fmt.Sprintf(" at byte %d", s.ByteOffset+1)
	}
	if errors.Is(err, jsontext.ErrDuplicateName) {
		return malformed("the body has a name twice in one object%s", at)
	}
	return malformed("the body is not valid JSON in UTF-8%s", at)
}
