package annotations

import (
	"strconv"
	"strings"
)

// Rollback is a request to run an earlier revision again.
type Rollback struct {
	// Value is the annotation whole, by which a request is known.
	Value string
	// Revision is the one asked for; 0 where one of the others is set.
	Revision int
	// Previous asks for the newest earlier revision that was good.
	Previous bool
	// None ends a hold.
	None bool
}

// Words that stand in place of a revision.
const (
	rollbackPrevious = "previous"
	rollbackNone     = "none"
)

// Malformed tells whether the request is none that could ever be met.
func (r Rollback) Malformed() bool { return r.Revision == 0 && !r.Previous && !r.None }

// parseRollback reads "<revision>", "previous" or "none", each with "@<token>"
// after it or not. An empty value asks for nothing.
func parseRollback(value string) *Rollback {
	if value == "" {
		return nil
	}
	r := &Rollback{Value: value}
	what, _, _ := strings.Cut(value, "@")
	switch what = strings.TrimSpace(what); what {
	case rollbackPrevious:
		r.Previous = true
	case rollbackNone:
		r.None = true
	default:
		if revision, err := strconv.Atoi(what); err == nil && revision > 0 {
			r.Revision = revision
		}
	}
	return r
}
