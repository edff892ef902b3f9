package configs

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// WriteText writes the report for people.
func (e *Errors) WriteText(w io.Writer) error {
	return written(io.WriteString(w, e.Error()+"\n"))
}

// WriteJSON writes the problems as one JSON array.
func (e *Errors) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return written(0, enc.Encode(append([]Problem{}, e.Problems...))) // none is [], and not null
}

// WriteGitHub writes one GitHub workflow command a problem, which shows it as an annotation on its line.
func (e *Errors) WriteGitHub(w io.Writer) error {
	for _, p := range e.Problems {
		if err := written(io.WriteString(w, p.gitHub()+"\n")); err != nil {
			return err
		}
	}
	return nil
}

func (p Problem) gitHub() string {
	command := "error"
	if p.Warning {
		command = "warning"
	}
	message := gitHubMessage.Replace(p.Message)
	title := gitHubProperty.Replace(p.Code)
	if p.Line == 0 {
		return fmt.Sprintf("::%s title=%s::%s: %s", command, title, gitHubMessage.Replace(p.File), message)
	}
	return fmt.Sprintf("::%s file=%s,line=%d,col=%d,endColumn=%d,title=%s::%s", command,
		gitHubProperty.Replace(p.File), p.Line, p.Column, p.Column+max(p.Length, 1), title, message)
}

// The escapes of github.com/actions/toolkit, packages/core/src/command.ts.
//
//nolint:gochecknoglobals // a strings.Replacer is immutable
var (
	gitHubMessage  = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	gitHubProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

func written(_ int, err error) error {
	if err != nil {
		return fmt.Errorf("write problems: %w", err)
	}
	return nil
}
