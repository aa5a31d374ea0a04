package watches

import (
	"fmt"
	"strings"
)

// LineError is one thing that is wrong with a watches file, at a place in it.
type LineError struct {
	// File is the name of the file as it was given to Parse.
	File string
	// Line counts from 1; 0 means the file as a whole.
	Line int
	// Message says what is wrong and what to do about it.
	Message string
}

// Error formats the problem as compilers do: file:line: message.
func (p LineError) Error() string {
	if p.Line == 0 {
		return fmt.Sprintf("%s: %s", p.File, p.Message)
	}
	return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Message)
}

// LineErrors is every problem that was found, in the order of the file. It is an
// error of as many lines.
type LineErrors []LineError

// Error joins the problems, one a line.
func (ps LineErrors) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// Err returns nil where there is no problem, for a nil slice in an error
// interface is not nil.
func (ps LineErrors) Err() error {
	if len(ps) == 0 {
		return nil
	}
	return ps
}
