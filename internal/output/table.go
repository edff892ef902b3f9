package output

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// Tone says how a cell is meant; a color only repeats the word that is there.
type Tone string

// The tones.
const (
	Plain Tone = ""
	Good  Tone = "32" // green
	Warn  Tone = "33" // yellow
	Bad   Tone = "31" // red
	Faint Tone = "2"
	Bold  Tone = "1"
)

// Paint wraps text in the tone's escape sequence.
func (t Tone) Paint(text string) string {
	if t == Plain || text == "" {
		return text
	}
	return "\x1b[" + string(t) + "m" + text + "\x1b[0m"
}

func encodeTable[T any](l List[T], color bool) []byte {
	if len(l.Items) == 0 {
		return nil
	}
	cells := make([][]string, len(l.Items))
	for i, item := range l.Items {
		for _, c := range l.Columns {
			cells[i] = append(cells[i], Clean(c.Cell(item)))
		}
	}
	widths := columnWidths(l.Columns, cells)
	var b bytes.Buffer
	header := make([]cell, len(l.Columns))
	for i, c := range l.Columns {
		header[i] = cell{text: c.Title, tone: Bold, right: c.Right, width: widths[i]}
	}
	writeRow(&b, header, color)
	for row, item := range l.Items {
		line := make([]cell, len(l.Columns))
		for i, c := range l.Columns {
			line[i] = cell{text: cells[row][i], right: c.Right, width: widths[i]}
			if c.Tone != nil {
				line[i].tone = c.Tone(item)
			}
		}
		writeRow(&b, line, color)
	}
	return b.Bytes()
}

func columnWidths[T any](columns []Column[T], cells [][]string) []int {
	widths := make([]int, len(columns))
	for i, c := range columns {
		widths[i] = utf8.RuneCountInString(c.Title)
		for _, row := range cells {
			widths[i] = max(widths[i], utf8.RuneCountInString(row[i]))
		}
	}
	return widths
}

type cell struct {
	text  string
	tone  Tone
	right bool
	width int
}

// writeRow pads outside the color, and not at the end of the line: trailing blanks are noise in a diff.
func writeRow(b *bytes.Buffer, row []cell, color bool) {
	var line strings.Builder
	for i, c := range row {
		if i > 0 {
			line.WriteString("  ")
		}
		pad := strings.Repeat(" ", c.width-utf8.RuneCountInString(c.text))
		text := c.text
		if color {
			text = c.tone.Paint(text)
		}
		if c.right {
			line.WriteString(pad + text)
		} else {
			line.WriteString(text + pad)
		}
	}
	b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
}
