package configs

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxValueFile is the largest file that ${file:...} reads.
const maxValueFile = 64 << 10

// variables replaces ${...} in scalar values.
type variables struct {
	getenv   func(string) string
	readFile func(string) ([]byte, error)
	dir      string    // of the configuration file: relative paths start there
	used     *[]string // the files that were asked for; nil when nobody wants to know
}

// read reads a file that a value names.
func (v variables) read(path string) ([]byte, error) {
	if v.used != nil && !slices.Contains(*v.used, path) {
		*v.used = append(*v.used, path)
	}
	return v.readFile(path)
}

// partError is a problem with a part of a text.
type partError struct {
	part

	code, message string
}

// replace replaces every ${...} of text, once: what comes out of a variable is not looked at again. $$ is one dollar, as
// in compose files; any other dollar stays.
func (v variables) replace(text string) (out string, replaced bool, problem *partError) {
	var b strings.Builder
	for i := 0; i < len(text); {
		rest := text[i:]
		switch {
		case strings.HasPrefix(rest, "$$"):
			b.WriteByte('$')
			i += 2
		case strings.HasPrefix(rest, "${"):
			end := strings.IndexByte(rest, '}')
			if end < 0 {
				return "", false, &partError{part{i, len(rest)}, codeVariable, `"${" without "}"; write "$${" for the text itself`}
			}
			value, err := v.lookUp(rest[2:end])
			if err != nil {
				err.part = part{i, end + 1}
				return "", false, err
			}
			b.WriteString(value)
			replaced = true
			i += end + 1
		default:
			b.WriteByte(text[i])
			i++
		}
	}
	return b.String(), replaced, nil
}

// lookUp is the value of what is between the braces.
func (v variables) lookUp(inner string) (string, *partError) {
	if path, ok := strings.CutPrefix(inner, "file:"); ok {
		return v.file(path)
	}
	name, rest := inner, ""
	if i := strings.IndexFunc(inner, func(r rune) bool { return !isNameRune(r) }); i >= 0 {
		name, rest = inner[:i], inner[i:]
	}
	fallback, hasFallback := strings.CutPrefix(rest, ":-")
	demand, hasDemand := strings.CutPrefix(rest, ":?")
	switch {
	case name == "" || name[0] >= '0' && name[0] <= '9', rest != "" && !hasFallback && !hasDemand:
		return "", variableProblem(fmt.Sprintf("%q is not understood; write ${NAME}, ${NAME:-default}, ${NAME:?message} or ${file:path}, and $${ for the text itself", abbreviate("${"+inner+"}")))
	case strings.Contains(rest, "${"):
		return "", variableProblem("a ${...} inside another one is not replaced; set one variable, or write the default as text")
	}
	value := v.getenv(name)
	switch {
	case value != "":
		return v.checked(value, "the variable "+name)
	case hasFallback:
		return fallback, nil
	case hasDemand && demand != "":
		return "", variableProblem(fmt.Sprintf("%s is not set: %s", name, demand))
	default:
		return "", variableProblem(fmt.Sprintf("%s is not set, or is empty; set it, or write ${%s:-} if it may be empty", name, name))
	}
}

func variableProblem(message string) *partError {
	return &partError{code: codeVariable, message: message}
}

func isNameRune(r rune) bool {
	return r == '_' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z'
}

// file is the content of a file, without the newline that editors end files with.
func (v variables) file(path string) (string, *partError) {
	if path == "" {
		return "", &partError{code: codeFile, message: "${file:} has no path"}
	}
	full := path
	if !filepath.IsAbs(full) {
		full = filepath.Join(v.dir, full)
	}
	data, err := v.read(full)
	if err != nil {
		return "", &partError{code: codeFile, message: fmt.Sprintf("the file %q cannot be read: %s", path, reason(err))}
	}
	if len(data) > maxValueFile {
		return "", &partError{code: codeFile, message: fmt.Sprintf("the file %q has more than %d bytes, too many for a value", path, maxValueFile)}
	}
	return v.checked(string(bytes.TrimSuffix(bytes.TrimSuffix(data, []byte("\n")), []byte("\r"))), fmt.Sprintf("the file %q", path))
}

// checked refuses values that neither a database nor an environment could hold.
func (variables) checked(value, where string) (string, *partError) {
	if strings.ContainsRune(value, 0) || !utf8.ValidString(value) {
		return "", variableProblem(where + " holds something that is not text (a NUL, or not UTF-8)")
	}
	return value, nil
}

// reason is the error without the path that the message already names.
func reason(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "it does not exist"
	case errors.Is(err, fs.ErrPermission):
		return "permission denied"
	}
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		return pathError.Err.Error()
	}
	return err.Error()
}
