package httpapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cronlatch/cronlatch/internal/httpapi"
)

// spec is the OpenAPI document as a judge of answers.
type spec struct {
	root     map[string]any
	compiler *jsonschema.Compiler

	mu   sync.Mutex
	came map[string]bool // what was seen: "acquireLock 409", "acquireLock 409 stale_token"
}

func newSpec(t *testing.T) *spec {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(httpapi.OpenAPI("")))
	require.NoError(t, err)
	root, ok := doc.(map[string]any)
	require.True(t, ok)
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	require.NoError(t, c.AddResource("openapi.json", doc))
	return &spec{root: root, compiler: c, came: map[string]bool{}}
}

// at follows a JSON pointer, and the references on its way; it returns where it came out, too.
func (s *spec) at(t *testing.T, pointer string) (value any, resolved string) {
	t.Helper()
	value, resolved = s.root, ""
	for step := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		object, ok := value.(map[string]any)
		require.True(t, ok, "%s has no %s", resolved, step)
		value = object[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]
		resolved += "/" + step
		if object, ok := value.(map[string]any); ok {
			if ref, ok := object["$ref"].(string); ok {
				value, resolved = s.at(t, strings.TrimPrefix(ref, "#"))
			}
		}
	}
	return value, resolved
}

func escaped(step string) string { return strings.NewReplacer("~", "~0", "/", "~1").Replace(step) }

func object(t *testing.T, v any) map[string]any {
	t.Helper()
	m, ok := v.(map[string]any)
	require.True(t, ok, "%v", v)
	return m
}

// operation is one method of one path.
type operation struct {
	id, method, path string
	pointer          string
	statuses         []string
	roles            []string
	public           bool
}

func (s *spec) operations(t *testing.T) []operation {
	t.Helper()
	var all []operation
	for path, item := range object(t, s.root["paths"]) {
		for method, v := range object(t, item) {
			if method == "parameters" {
				continue
			}
			o := object(t, v)
			op := operation{
				id: fmt.Sprint(o["operationId"]), method: strings.ToUpper(method), path: path,
				pointer: "/paths/" + escaped(path) + "/" + method,
			}
			for status := range object(t, o["responses"]) {
				op.statuses = append(op.statuses, status)
			}
			roles, ok := o["x-roles"].([]any)
			require.True(t, ok, op.id)
			for _, role := range roles {
				op.roles = append(op.roles, fmt.Sprint(role))
			}
			security, own := o["security"].([]any)
			op.public = own && len(security) == 0
			all = append(all, op)
		}
	}
	return all
}

// operationOf finds what a request asks for; nil is no operation: another path or method.
func (s *spec) operationOf(t *testing.T, r *http.Request) *operation {
	t.Helper()
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	got := strings.Split(r.URL.EscapedPath(), "/")
	all := s.operations(t)
	slices.SortFunc(all, func(a, b operation) int { return strings.Count(a.path, "{") - strings.Count(b.path, "{") }) // as the mux does
	for _, op := range all {
		want := strings.Split(op.path, "/")
		match := op.method == method && len(want) == len(got)
		for i := range want {
			match = match && (strings.HasPrefix(want[i], "{") && got[i] != "" || want[i] == got[i])
		}
		if match {
			return &op
		}
	}
	return nil
}

// check compares an answer with what the document says of it.
func (s *spec) check(t *testing.T, r *http.Request, w *httptest.ResponseRecorder) {
	t.Helper()
	op := s.operationOf(t, r)
	if op == nil {
		assert.Contains(t, []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusMisdirectedRequest}, w.Code)
		problemOf(t, w)
		return
	}
	status := strconv.Itoa(w.Code)
	require.Contains(t, op.statuses, status, "%s answered a status that is not in the document: %s", op.id, w.Body)
	v, pointer := s.at(t, op.pointer+"/responses/"+status)
	s.checkHeaders(t, op, w, object(t, v))
	s.checkContent(t, op, r, w, pointer)
	s.note(op.id+" "+status, w)
}

func (s *spec) checkHeaders(t *testing.T, op *operation, w *httptest.ResponseRecorder, response map[string]any) {
	t.Helper()
	declared := map[string]bool{"Content-Type": response["content"] != nil, "Connection": true}
	headers := object(t, response["headers"])
	for name, v := range headers {
		declared[http.CanonicalHeaderKey(name)] = true
		header := object(t, v)
		if ref, ok := header["$ref"].(string); ok {
			resolved, _ := s.at(t, strings.TrimPrefix(ref, "#"))
			header = object(t, resolved)
		}
		given := w.Header().Get(name)
		if given == "" {
			assert.NotEqual(t, true, header["required"], "%s %d: no header %s", op.id, w.Code, name)
			continue
		}
		s.checkHeader(t, header, name, given)
	}
	for name := range w.Header() {
		assert.True(t, declared[name], "%s %d: the header %s is not in the document", op.id, w.Code, name)
	}
}

// checkHeader validates a header's text against its schema, as the type that the schema has.
func (s *spec) checkHeader(t *testing.T, header map[string]any, name, given string) {
	t.Helper()
	schema := object(t, header["schema"])
	var value any = given
	if schema["type"] == "integer" {
		value = json.Number(given)
	}
	c := jsonschema.NewCompiler()
	require.NoError(t, c.AddResource("header.json", schema))
	compiled, err := c.Compile("header.json")
	require.NoError(t, err)
	assert.NoError(t, compiled.Validate(value), "%s: %s", name, given)
}

func (s *spec) checkContent(t *testing.T, op *operation, r *http.Request, w *httptest.ResponseRecorder, pointer string) {
	t.Helper()
	v, _ := s.at(t, pointer)
	content, ok := object(t, v)["content"].(map[string]any)
	if !ok {
		assert.Empty(t, w.Body.Bytes(), "%s %d has no content", op.id, w.Code)
		assert.Empty(t, w.Header().Get("Content-Type"))
		return
	}
	kind := w.Header().Get("Content-Type")
	require.Contains(t, content, kind, "%s %d", op.id, w.Code)
	if r.Method == http.MethodHead {
		return
	}
	if !strings.HasSuffix(kind, "/json") && !strings.HasSuffix(kind, "+json") {
		s.validateValue(t, pointer+"/content/"+escaped(kind)+"/schema", w.Body.String())
		return
	}
	s.validate(t, pointer+"/content/"+escaped(kind)+"/schema", w.Body.Bytes())
	if kind == "application/problem+json" {
		problemOf(t, w)
	}
}

func (s *spec) validate(t *testing.T, pointer string, text []byte) {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err, "%s", text)
	s.validateValue(t, pointer, value)
}

func (s *spec) validateValue(t *testing.T, pointer string, value any) {
	t.Helper()
	s.mu.Lock()
	schema, err := s.compiler.Compile("openapi.json#" + strings.NewReplacer("{", "%7B", "}", "%7D").Replace(pointer))
	s.mu.Unlock()
	require.NoError(t, err)
	require.NoError(t, schema.Validate(value), "%s: %v", pointer, value)
}

func (s *spec) note(what string, w *httptest.ResponseRecorder) {
	var p struct {
		Code string `json:"code"`
	}
	_ = json.Unmarshal(w.Body.Bytes(), &p) // only problems have one
	s.mu.Lock()
	defer s.mu.Unlock()
	s.came[what] = true
	s.came[what+" "+p.Code] = true
}
