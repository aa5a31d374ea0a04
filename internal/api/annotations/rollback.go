package annotations

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Rollback is a request to roll back to an earlier revision, or to end a hold.
type Rollback struct {
	// Value is the complete value of the annotation. Requests with different values are
	// different requests.
	Value string
	// Revision is the requested revision, 0 if Previous or None is set.
	Revision int
	// Previous requests the newest earlier revision that was deployed successfully.
	Previous bool
	// None ends a hold.
	None bool
	// Generation is the generation of the custom resource at the time of the request, 0 if
	// the request does not name it.
	Generation int64
}

// Values of the annotation that do not name a revision.
const (
	rollbackPrevious = "previous"
	rollbackNone     = "none"
)

// Malformed reports whether no state of the release can satisfy the request.
func (r Rollback) Malformed() bool { return r.Revision == 0 && !r.Previous && !r.None }

// generation matches the generation at the start of a token, see WithGeneration.
var generation = regexp.MustCompile(`^g([1-9]\d{0,17})(@|$)`)

// WithGeneration returns the value of a request that applies to one generation of the
// custom resource. If the custom resource has been edited since, the operator ignores the
// request and applies the edit.
func WithGeneration(to string, generation int64, token string) string {
	return fmt.Sprintf("%s@g%d@%s", to, generation, token)
}

// parseRollback parses "<revision>", "previous" or "none", optionally followed by
// "@<token>". A token "g<generation>", or one that starts with "g<generation>@", names the
// generation. It returns nil for an empty value.
func parseRollback(value string) *Rollback {
	if value == "" {
		return nil
	}
	r := &Rollback{Value: value}
	what, token, _ := strings.Cut(value, "@")
	if named := generation.FindStringSubmatch(strings.TrimSpace(token)); named != nil {
		// At most 18 digits always fit.
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
