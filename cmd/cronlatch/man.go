package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func (a *app) manCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use:   "man [COMMAND]",
		Short: "Print the manual page of a command, or write those of all into a folder",
		Long: "man prints one page in the form that man reads. With --dir it writes a page for each command: cronlatch.1,\n" +
			"cronlatch-run.1 and so on.",
		Example: "  $ cronlatch man run > cronlatch-run.1\n  $ cronlatch man --dir /usr/local/share/man/man1",

		ValidArgsFunction: commandWords,
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			if dir != "" {
				if len(args) > 0 {
					return usage("--dir writes the pages of all commands, and takes no name of one")
				}
				return a.manPages(root, a.path(dir))
			}
			at, err := page(root, args)
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(a.Stdout, manPage(at))
			return err
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "folder for the pages of all commands")
	return cmd
}

// page is the command at the end of a path of words.
func page(root *cobra.Command, words []string) (*cobra.Command, error) {
	at := root
	for _, word := range words {
		next, rest, err := at.Find([]string{word})
		if err != nil || next == at || len(rest) > 0 {
			return nil, unknownPage(at, word)
		}
		at = next
	}
	return at, nil
}

func (a *app) manPages(root *cobra.Command, dir string) error {
	const mode = 0o755
	if err := os.MkdirAll(dir, mode); err != nil {
		return fail(exitFailure, "making the folder of the manual: %w", err)
	}
	var write func(cmd *cobra.Command) error
	write = func(cmd *cobra.Command) error {
		const readable = 0o644
		if err := os.WriteFile(filepath.Join(dir, manName(cmd)+".1"), []byte(manPage(cmd)), readable); err != nil { //nolint:gosec // a manual is for all
			return fail(exitFailure, "writing the manual: %w", err)
		}
		for _, c := range manChildren(cmd) {
			if err := write(c); err != nil {
				return err
			}
		}
		return nil
	}
	return write(root)
}

// manChildren are the subcommands that people see, and the pages of help.
func manChildren(cmd *cobra.Command) (list []*cobra.Command) {
	for _, c := range cmd.Commands() {
		if !c.Hidden && c.Name() != "help" {
			list = append(list, c)
		}
	}
	return list
}

func manName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manPage is the page of a command in roff.
func manPage(cmd *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s 1 \"\" \"cronlatch\" \"cronlatch manual\"\n", roff(strings.ToUpper(manName(cmd))))
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(manName(cmd)), roff(cmd.Short))
	if cmd.Runnable() {
		fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", roff(useLine(cmd)))
	}
	text := cmd.Long
	if text == "" {
		text = cmd.Short + "."
	}
	b.WriteString(".SH DESCRIPTION\n" + literal(text))
	manOptions(&b, cmd)
	b.WriteString(".SH EXAMPLES\n" + literal(cmd.Example))
	b.WriteString(".SH EXIT STATUS\n")
	for _, c := range exitCodes() {
		item(&b, c.code, c.meaning)
	}
	b.WriteString(".SH ENVIRONMENT\n")
	for _, v := range manEnvironment() {
		item(&b, v[0], v[1])
	}
	manSeeAlso(&b, cmd)
	return b.String()
}

func manEnvironment() [][2]string {
	return [][2]string{
		{"CRONLATCH_CONFIG", "the configuration file; default cronlatch.yaml"},
		{"DATABASE_URL", "the database, postgres://... or sqlite:PATH; goes before the file"},
		{"CRONLATCH_SERVER", "the daemon that client commands talk to; without it they use the database"},
		{"CRONLATCH_TOKEN", "the token that is shown to the daemon"},
		{"CRONLATCH_CACERT", "file with the roots that sign the daemon's certificate"},
		{"NO_COLOR", "no color, when it is set and not empty"},
	}
}

func manOptions(b *strings.Builder, cmd *cobra.Command) {
	b.WriteString(".SH OPTIONS\n")
	each := func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		if kind, _ := pflag.UnquoteUsage(f); kind != "" {
			name += " " + kind
		}
		item(b, name, f.Usage)
	}
	cmd.LocalFlags().VisitAll(each)
	cmd.InheritedFlags().VisitAll(each)
	item(b, "-h, --help", "say how the command is used")
}

func manSeeAlso(b *strings.Builder, cmd *cobra.Command) {
	var names []string
	if cmd.HasParent() {
		names = append(names, manName(cmd.Parent()))
	}
	for _, c := range manChildren(cmd) {
		names = append(names, manName(c))
	}
	if len(names) == 0 {
		return
	}
	b.WriteString(".SH SEE ALSO\n")
	for i, name := range names {
		end := ","
		if i == len(names)-1 {
			end = ""
		}
		fmt.Fprintf(b, ".BR %s (1)%s\n", roff(name), end)
	}
}

func item(b *strings.Builder, term, text string) {
	fmt.Fprintf(b, ".TP\n.B %s\n%s\n", roff(term), roff(text))
}

// literal keeps the lines as they are.
func literal(text string) string {
	var b strings.Builder
	b.WriteString(".nf\n")
	for line := range strings.SplitSeq(text, "\n") {
		b.WriteString(roff(line) + "\n")
	}
	return b.String() + ".fi\n"
}

// roff writes text so that nothing in it is an instruction: a backslash, a point or an apostrophe at the beginning of a line.
// A minus is one, so that options can be copied.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\"", `\(dq`, "\n", " ").Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		return `\&` + text
	}
	return text
}
