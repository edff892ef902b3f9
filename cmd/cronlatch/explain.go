package main

import (
	"context"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/cronlatch/cronlatch/internal/explain"
	"github.com/cronlatch/cronlatch/internal/output"
	"github.com/cronlatch/cronlatch/internal/wire"
	"github.com/cronlatch/cronlatch/jobs"
)

func (a *app) explainCommand() *cobra.Command {
	var format output.Format
	var server, at string
	cmd := &cobra.Command{
		Use:   "explain JOB|RUN",
		Short: "Tell why a job ran, did not run, or will",
		Long: "explain tells the story of a run: planned, blocked by whom, claimed, started, lost, retried, finished, and what came\n" +
			"after it. Of a job it is the run that is unfinished now, else the last one that fell due, and then when it runs next\n" +
			"and what could stop that. --at is about the occurrence at that instant or the last one before it, and says why there is\n" +
			"no run where there is none. A number is a run's id, unless there is a job of that name.",
		Example: "  $ cronlatch explain backup:db\n  $ cronlatch explain backup:db --at \"2026-03-29 02:30\"\n" +
			"  $ cronlatch explain backup:db --at \"2h ago\"\n" +
			"  $ cronlatch explain 1207",
		Args: oneArg("the name of a job or a run's id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withAPI(cmd.Context(), server, func(ctx context.Context, c *api) error {
				story, err := findStory(ctx, c, args[0], at)
				if err != nil {
					return err
				}
				return a.showStory(&story, format)
			})
		},
	}
	cmd.Flags().StringVar(&at, "at", "", "an instant, \"2026-03-29 02:30\" or 02:30 in the job's zone, or \"2h ago\"")
	addServer(cmd, &server)
	addOutput(cmd, &format, output.Table, output.JSON, output.YAML)
	return cmd
}

// findStory asks for the job first: a number may be its name.
func findStory(ctx context.Context, c *api, word, at string) (story wire.Story, err error) {
	query := url.Values{}
	if at != "" {
		query.Set("at", at)
	}
	err = c.get(ctx, "/jobs/"+escaped(word)+"/explain", query, &story)
	if p, ok := errors.AsType[*problemError](err); ok && at != "" {
		for _, e := range p.Errors {
			if e.Field == "at" { // it is the flag here
				return story, usage("--at: %s", e.Message)
			}
		}
	}
	id, notNumber := strconv.ParseInt(word, 10, 64)
	if notNumber != nil || id < 1 || !isProblem(err, "not_found") {
		return story, err
	}
	if at != "" {
		return story, usage("--at is for a job, and there is no job %q", word)
	}
	err = c.get(ctx, "/runs/"+strconv.FormatInt(id, 10)+"/explain", nil, &story)
	if isProblem(err, "not_found") {
		return story, fail(exitFailure, "there is neither a job nor a run %q; old runs are deleted, as history says", word)
	}
	return story, err
}

// escaped is a name as one segment of a path.
func escaped(name string) string {
	if name == "." || name == ".." { // which a path cannot have as a segment
		return strings.ReplaceAll(name, ".", "%2E")
	}
	return url.PathEscape(name)
}

// storyWidth is where sentences are wrapped.
const storyWidth = 100

func (a *app) showStory(s *wire.Story, format output.Format) error {
	o := a.answer(format)
	if format != output.Table {
		return output.WriteValue(o, s, nil)
	}
	var b strings.Builder
	paint := func(t output.Tone, text string) string {
		if !o.Color {
			return text
		}
		return t.Paint(text)
	}
	tone := runView{wire.Run{Outcome: s.Outcome}}.tone()
	for _, line := range wrapped(output.Clean(s.Verdict), storyWidth) {
		b.WriteString(paint(tone, line) + "\n")
	}
	if len(s.Steps) > 0 {
		b.WriteString("\n")
	}
	for i := range s.Steps {
		writeStep(&b, &s.Steps[i], paint)
	}
	if len(s.Next) > 0 {
		b.WriteString("\n")
	}
	for _, next := range s.Next {
		b.WriteString("next: " + paint(output.Bold, output.Clean(next)) + "\n")
	}
	if _, err := o.Writer.Write([]byte(b.String())); err != nil {
		return &failure{code: exitFailure, err: err}
	}
	return nil
}

// writeStep writes a sentence behind its instant; what is no event stands behind blanks.
func writeStep(b *strings.Builder, s *wire.StoryStep, paint func(output.Tone, string) string) {
	const width = len("2006-01-02 15:04:05Z")
	at := strings.Repeat(" ", width)
	if s.At != nil {
		at = paint(output.Faint, stamp(*s.At))
	}
	for i, line := range wrapped(output.Clean(s.Text), storyWidth-width-2) {
		if i > 0 {
			at = strings.Repeat(" ", width)
		}
		b.WriteString(at + "  " + paint(stepTone(s), line) + "\n")
	}
}

func stepTone(s *wire.StoryStep) output.Tone {
	switch explain.Kind(s.Kind) {
	case explain.Blocked, explain.Waiting:
		return output.Warn
	case explain.Lost:
		return output.Bad
	case explain.Finished:
		if s.Reason == nil {
			return output.Good
		}
		if r := jobs.Reason(*s.Reason); r == jobs.ReasonRequested || r == jobs.ReasonReplaced || r == jobs.ReasonDrain {
			return output.Warn
		}
		return output.Bad
	case explain.Hint:
		return output.Faint
	case explain.Planned, explain.Claimed, explain.Started, explain.Renewed, explain.Retried, explain.Followed, explain.Future:
	}
	return output.Plain
}

// wrapped breaks a text at blanks, so that no line is longer than width unless a single word is.
func wrapped(text string, width int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width:
			lines, line = append(lines, line), word
		default:
			line += " " + word
		}
	}
	return append(lines, line)
}
