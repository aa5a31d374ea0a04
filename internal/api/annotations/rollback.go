package annotations

import (
	"fmt"
	"regexp"
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
	// Generation is that of the custom resource which the person who asked has
	// seen; 0 where the request does not name one.
	Generation int64
}

// Words that stand in place of a revision.
const (
	rollbackPrevious = "previous"
	rollbackNone     = "none"
)

// Malformed reports whether the request is none that could ever be met.
func (r Rollback) Malformed() bool { return r.Revision == 0 && !r.Previous && !r.None }

// generation is the part of a token that names a generation, see WithGeneration.
var generation = regexp.MustCompile(`^g([1-9]\d{0,17})(@|$)`)

// WithGeneration returns the value of a request, made when the custom resource
// had that generation: an edit that came later is followed, and the request is
// not carried out.
func WithGeneration(to string, generation int64, token string) string {
	return fmt.Sprintf("%s@g%d@%s", to, generation, token)
}

// parseRollback reads "<revision>", "previous" or "none", each with "@<token>"
// after it or not. A token that is "g<generation>", or begins with that and "@",
// names the generation. An empty value asks for nothing.
func parseRollback(value string) *Rollback {
	if value == "" {
		return nil
	}
	r := &Rollback{Value: value}
	what, token, _ := strings.Cut(value, "@")
	if named := generation.FindStringSubmatch(strings.TrimSpace(token)); named != nil {
		// It has at most 18 digits.
		r.Generation, _ = strconv.ParseInt(named[1], 10, 64)
	}
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
