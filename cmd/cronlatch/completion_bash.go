package main

import (
	"bytes"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// bashWords finds the words of the line where the package bash-completion is not there to do it (most containers, macOS); without
// it cobra's script ends each press of Tab with "command not found". Readline breaks words at = and :, and names of jobs have
// colons: what touches such a break on the line is put together again.
const bashWords = `
if ! declare -F _get_comp_words_by_ref >/dev/null 2>&1; then
    __cronlatch_init_completion()
    {
        COMPREPLY=()
        local line=${COMP_LINE:0:COMP_POINT} rest i word
        words=() cword=-1
        for ((i = 0; i <= COMP_CWORD; i++)); do
            rest=${line#"${line%%[![:blank:]]*}"}
            word=${COMP_WORDS[i]}
            if ((i == COMP_CWORD)); then
                word=$rest # what stands before the cursor
            fi
            if [[ $i -gt 0 && $rest == "$line" && ( $word == [=:]* || ${COMP_WORDS[i - 1]} == *[=:] ) ]]; then
                words[cword]+=$word
            else
                cword=$((cword + 1))
                words[cword]=$word
            fi
            line=${rest#"$word"}
        done
        cur=${words[cword]}
        prev=
        if ((cword > 0)); then
            prev=${words[cword - 1]}
        fi
    }
fi
`

func bashCompletion(root *cobra.Command, w io.Writer) error {
	var script bytes.Buffer
	if err := root.GenBashCompletionV2(&script, true); err != nil {
		return fmt.Errorf("making the script: %w", err)
	}
	script.WriteString(bashWords) // a function that is defined again is the later one
	_, err := script.WriteTo(w)
	return err //nolint:wrapcheck // of writing to the terminal
}
