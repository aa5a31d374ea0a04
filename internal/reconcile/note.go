package reconcile

import (
	"errors"
	"strings"

	"github.com/chartwright/chartwright/internal/helm"
)

// maxNote is the API server's limit of an event's note, in bytes.
const maxNote = 1024

// note is an event's text: what happened, with the end of Helm's log. Where
// that is too long, the log gives way from its beginning, for the last line
// tells most, and the message keeps half of the room.
func note(message string, err error) string {
	var failed *helm.ActionError
	if !errors.As(err, &failed) || len(failed.Log) == 0 {
		return cut(message)
	}
	const heading = "\nHelm's log ended with:\n"
	log := strings.Join(failed.Log, "\n")
	if len(message)+len(heading)+len(log) <= maxNote {
		return message + heading + log
	}
	message = cutTo(message, maxNote/2)
	room := maxNote - len(message) - len(heading)
	lines := failed.Log
	for len(lines) > 1 && len(log) > room {
		lines = lines[1:]
		log = strings.Join(lines, "\n")
	}
	return message + heading + cutTo(log, room)
}

func cut(message string) string { return cutTo(message, maxNote) }

func cutTo(message string, limit int) string {
	if len(message) > limit {
		message = strings.ToValidUTF8(message[:limit-len("…")], "") + "…"
	}
	return message
}
