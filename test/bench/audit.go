package main

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// request is a request in the API server's audit log.
type request struct {
	Verb           string
	User           struct{ Username string }
	ObjectRef      struct{ APIGroup, Resource, Subresource, Namespace, Name string }
	ResponseStatus struct{ Code int }
	// RequestReceivedTimestamp and StageTimestamp are the times at which the
	// API server received the request and completed the response.
	RequestReceivedTimestamp, StageTimestamp time.Time
}

// parseRequests returns the requests of some users from entries of the log.
// Most entries belong to other users and are not decoded.
func parseRequests(lines []byte, users ...string) ([]request, error) {
	var found []request
	for line := range bytes.Lines(lines) {
		if !slices.ContainsFunc(users, func(user string) bool { return bytes.Contains(line, []byte(`"`+user+`"`)) }) {
			continue
		}
		var r request
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, err
		}
		if slices.Contains(users, r.User.Username) {
			found = append(found, r)
		}
	}
	return found, nil
}

// write reports whether the request is a write. Access reviews do not count as
// writes, events do.
func (r request) write() bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, r.Verb) &&
		!strings.HasSuffix(r.ObjectRef.Resource, "reviews")
}

// background reports whether the request is a watch or part of leader election.
func (r request) background() bool {
	return r.Verb == "watch" || r.ObjectRef.Resource == "leases"
}

func (r request) failed() bool { return r.ResponseStatus.Code >= 400 }

// object identifies the object of a request.
type object struct{ group, resource, namespace, name string }

func (r request) object() object {
	return object{r.ObjectRef.APIGroup, r.ObjectRef.Resource, r.ObjectRef.Namespace, r.ObjectRef.Name}
}

// counts are numbers of requests by verb, without background requests.
type counts struct {
	Verbs  map[string]int `json:"verbs,omitempty"`
	Total  int            `json:"total"`
	Writes int            `json:"writes"`
	// Failed requests got an error response, such as a conflict.
	Failed int `json:"failed"`
	// General requests name no resource, such as discovery. Their number does
	// not depend on the number of custom resources.
	General int `json:"general"`
	// Standing are watches and requests for leases, which are not counted in
	// Total.
	Standing int `json:"standing"`
}

func countRequests(requests []request) counts {
	c := counts{Verbs: map[string]int{}}
	for _, r := range requests {
		if r.background() {
			c.Standing++
			continue
		}
		c.Total++
		c.Verbs[r.Verb]++
		if r.write() {
			c.Writes++
		}
		if r.ObjectRef.Resource == "" {
			c.General++
		}
		if r.failed() {
			c.Failed++
		}
	}
	return c
}

// corrections returns the duration of each drift: from the response to the
// write that caused it to the response to the write that corrected it. Objects
// that are not yet corrected are missing.
func corrections(requests []request, user, operator string, drifted map[object]bool) map[object]time.Duration {
	since, lasted := map[object]request{}, map[object]time.Duration{}
	requests = slices.SortedStableFunc(slices.Values(requests), func(a, b request) int {
		return a.RequestReceivedTimestamp.Compare(b.RequestReceivedTimestamp)
	})
	for _, r := range requests {
		about := r.object()
		if !r.write() || r.failed() {
			continue
		}
		switch change, known := since[about]; {
		case r.User.Username == user && drifted[about]:
			since[about] = r
		case r.User.Username == operator && known:
			if _, already := lasted[about]; !already {
				lasted[about] = max(0, r.StageTimestamp.Sub(change.StageTimestamp))
			}
		}
	}
	return lasted
}
