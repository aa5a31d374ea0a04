package diagnose

import (
	"strings"
	"unicode"

	"github.com/chartwright/chartwright/internal/apply"
)

const (
	// longest is the length of an answer, in bytes: a condition's message holds
	// several.
	longest = 512
	// longestMessage and longestEvent are what is left of its parts where they
	// do not fit together.
	longestMessage = 240
	longestEvent   = 160
)

// Cause is why an object is not ready, as far as it could be found out.
type Cause struct {
	// Object is what the cause was found at: the object that was asked about,
	// or one that it made.
	Object apply.Key
	// Reason is a word of Kubernetes' own: ImagePullBackOff.
	Reason string
	// Message says more, in a sentence.
	Message string
	// Event is the last warning about Object, if it adds something.
	Event string
}

// Known tells whether anything was found out.
func (c Cause) Known() bool { return c.Reason != "" || c.Message != "" || c.Event != "" }

// String returns the cause as one line of 512 bytes at most:
//
//	Pod default/web-5cf: ImagePullBackOff: Back-off pulling image "web:1"; last warning: Failed: …
func (c Cause) String() string {
	whole := c.line()
	if len(whole) > longest {
		c.Message, c.Event = cut(oneLine(c.Message), longestMessage), cut(oneLine(c.Event), longestEvent)
		whole = c.line()
	}
	return cut(whole, longest)
}

func (c Cause) line() string {
	if !c.Known() {
		return c.Object.String() + ": nothing says why it is not ready"
	}
	said := join("; ", c.said(), prefixed("last warning: ", c.Event))
	return oneLine(c.Object.String() + ": " + said)
}

// said is the cause without the object and the event.
func (c Cause) said() string { return join(": ", c.Reason, c.Message) }

// join puts those texts together that are not empty.
func join(separator string, texts ...string) string {
	var some []string
	for _, text := range texts {
		if text != "" {
			some = append(some, text)
		}
	}
	return strings.Join(some, separator)
}

// prefixed returns a text with a prefix, and nothing where there is no text.
func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// oneLine makes a line of what others wrote: what cannot be printed becomes
// space, and space becomes one blank.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, strings.ToValidUTF8(text, ""))
	return strings.Join(strings.Fields(text), " ")
}

// cut shortens a text to a number of bytes and keeps it valid UTF-8.
func cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len("…")], "") + "…"
}
