package main

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// request is one request as the API server's audit log has it.
type request struct {
	Verb           string
	User           struct{ Username string }
	ObjectRef      struct{ APIGroup, Resource, Subresource, Namespace, Name string }
	ResponseStatus struct{ Code int }
	// RequestReceivedTimestamp and StageTimestamp are when the API server got
	// the request and when it had answered.
	RequestReceivedTimestamp, StageTimestamp time.Time
}

// parseRequests returns what some users asked for, of lines of the log. Most
// lines are of others: they are not decoded.
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

// write tells whether the request is one that changes something. A review is a
// question, and an event is none that anybody acts on but a write all the same.
func (r request) write() bool {
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, r.Verb) &&
		!strings.HasSuffix(r.ObjectRef.Resource, "reviews")
}

// standing tells whether the request belongs to what goes on at all times: the
// watches and the leader election.
func (r request) standing() bool {
	return r.Verb == "watch" || r.ObjectRef.Resource == "leases"
}

func (r request) failed() bool { return r.ResponseStatus.Code >= 400 }

// object is what a request is about.
type object struct{ group, resource, namespace, name string }

func (r request) object() object {
	return object{r.ObjectRef.APIGroup, r.ObjectRef.Resource, r.ObjectRef.Namespace, r.ObjectRef.Name}
}

// counts are requests by verb, without those that go on at all times.
type counts struct {
	Verbs  map[string]int `json:"verbs,omitempty"`
	Total  int            `json:"total"`
	Writes int            `json:"writes"`
	// Failed were answered with an error, a conflict say.
	Failed int `json:"failed"`
	// General name no resource: they ask what the cluster has, and do not become
	// more with the custom resources.
	General int `json:"general"`
	// Standing are watches and leases, which do not count.
	Standing int `json:"standing"`
}

func countRequests(requests []request) counts {
	c := counts{Verbs: map[string]int{}}
	for _, r := range requests {
		if r.standing() {
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

// repairs returns how long each damage has lasted: from the answer to who made
// it to the answer to who repaired it. What is missing is not repaired yet.
func repairs(requests []request, vandal, operator string, damaged map[object]bool) map[object]time.Duration {
	since, lasted := map[object]request{}, map[object]time.Duration{}
	requests = slices.SortedStableFunc(slices.Values(requests), func(a, b request) int {
		return a.RequestReceivedTimestamp.Compare(b.RequestReceivedTimestamp)
	})
	for _, r := range requests {
		about := r.object()
		if !r.write() || r.failed() {
			continue
		}
		switch damage, known := since[about]; {
		case r.User.Username == vandal && damaged[about]:
			since[about] = r
		case r.User.Username == operator && known:
			if _, already := lasted[about]; !already {
				lasted[about] = max(0, r.StageTimestamp.Sub(damage.StageTimestamp))
			}
		}
	}
	return lasted
}
