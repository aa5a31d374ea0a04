package helm

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// fault is what happens to one request of an action.
type fault struct {
	name string
	// outage reports that the same request succeeds later without any change, so that the
	// action itself must absorb the fault. After another fault, one more attempt is allowed.
	outage bool
	// answer is the response in place of that of the API server, or the error of the
	// transport.
	answer func(*http.Request) (*http.Response, error)
}

// faults are all faults.
var faults = []fault{
	{"404 page", false, func(r *http.Request) (*http.Response, error) {
		return response(r, http.StatusNotFound, "text/plain", []byte("404 page not found\n")), nil
	}},
	{"404 object", false, status(http.StatusNotFound, metav1.StatusReasonNotFound)},
	{"403", false, status(http.StatusForbidden, metav1.StatusReasonForbidden)},
	{"409", false, func(r *http.Request) (*http.Response, error) {
		if r.Method == http.MethodPost {
			return status(http.StatusConflict, metav1.StatusReasonAlreadyExists)(r)
		}
		return status(http.StatusConflict, metav1.StatusReasonConflict)(r)
	}},
	{"429", true, status(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests)},
	{"500", true, status(http.StatusInternalServerError, metav1.StatusReasonInternalError)},
	{"503", true, status(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable)},
	{"504", true, status(http.StatusGatewayTimeout, metav1.StatusReasonTimeout)},
	{"time limit", true, func(*http.Request) (*http.Response, error) { return nil, timeLimitError{} }},
	{"cut", true, func(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF }},
}

// timeLimitError is the error of the operator's transport after its time limit.
type timeLimitError struct{}

func (timeLimitError) Error() string { return "the API server did not answer in time" }
func (timeLimitError) Timeout() bool { return true }

// status answers like the API server.
func status(code int, reason metav1.StatusReason) func(*http.Request) (*http.Response, error) {
	return func(r *http.Request) (*http.Response, error) {
		resource, name := path.Base(path.Dir(r.URL.Path)), path.Base(r.URL.Path)
		if r.Method == http.MethodPost {
			resource, name = name, "web"
		}
		message := "refused by the test"
		if code == http.StatusForbidden {
			message = fmt.Sprintf("%s %q is forbidden: User \"operator\" cannot %s resource %q in API group \"\"", resource, name, strings.ToLower(r.Method), resource)
		}
		body, err := json.Marshal(metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: reason, Code: int32(code), Message: message,
			Details: &metav1.StatusDetails{Kind: resource, Name: name},
		})
		return response(r, code, "application/json", body), err
	}
}

func response(r *http.Request, code int, kind string, body []byte) *http.Response {
	header := http.Header{"Content-Type": {kind}}
	if code == http.StatusTooManyRequests {
		// The API server always sends it.
		header.Set("Retry-After", "1")
	}
	return &http.Response{
		StatusCode: code, Status: strconv.Itoa(code) + " " + http.StatusText(code), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(strings.NewReader(string(body))), ContentLength: int64(len(body)), Request: r,
	}
}

// point is one request of an action: the n-th one with a method and a path.
type point struct {
	request string
	n       int
}

func (p point) String() string { return fmt.Sprintf("%s #%d", p.request, p.n) }

// writes reports whether the request changes something.
func (p point) writes() bool {
	return !strings.HasPrefix(p.request, http.MethodGet+" ") && !strings.HasPrefix(p.request, dryRun+" ") && !strings.HasPrefix(p.request, watching+" ")
}

// watching is the method of watches in a point.
const watching = "WATCH"

// row is one row of the table: a fault at one request of an action.
type row struct {
	verb string
	at   point
	fault
	// late reports that the API server processes the request before.
	late bool
}

func (r row) String() string {
	moment := "before"
	if r.late {
		moment = "after"
	}
	return fmt.Sprintf("%s, %s %s %s", r.verb, r.name, moment, r.at)
}

// existing matches requests about versions, and about records and objects that exist.
var existing = regexp.MustCompile(`^DELETE |^GET /apis?(/[^/]+){0,2}$|/secrets/`)

// rowsOf returns the rows of an action that sends requests at the points.
func rowsOf(verb string, points []point) []row {
	var rows []row
	// Some requests are sent at the same time, in any order.
	for _, at := range slices.SortedFunc(slices.Values(points), func(a, b point) int { return strings.Compare(a.String(), b.String()) }) {
		for _, f := range faults {
			if f.name == "404 object" && (verb == "adoption" || verb == "uninstall" || existing.MatchString(at.request)) {
				// The API server never answers this if the object exists.
				continue
			}
			rows = append(rows, row{verb: verb, at: at, fault: f})
			if at.writes() {
				rows = append(rows, row{verb: verb, at: at, fault: f, late: true})
			}
		}
	}
	return rows
}

// counter is a transport that counts what an action sends, injects the fault of a row, and
// completes the Jobs that the action creates.
type counter struct {
	*faultyWorld
	row *row
	// injected reports that the fault was injected.
	injected bool
	seen     map[string]int
	points   []point
	jobs     int
	// claims are the claims that the action deletes.
	claims sets.Set[string]
}

func (c *counter) answer(request *http.Request, next http.RoundTripper) (*http.Response, error) {
	at := c.next(request)
	inject := c.row != nil && c.row.at == at
	if inject && !c.row.late {
		return c.row.answer(request)
	}
	response, err := next.RoundTrip(request)
	if err == nil && response.StatusCode < http.StatusBadRequest {
		c.processed(request)
	}
	if inject && err == nil {
		if err := response.Body.Close(); err != nil {
			return nil, err
		}
		return c.row.answer(request)
	}
	return response, err
}

// next returns the point of a request.
func (c *counter) next(request *http.Request) point {
	method, query := request.Method, request.URL.Query()
	switch {
	case query.Has("dryRun"):
		method = dryRun
	case query.Has("watch"):
		method = watching
	}
	name := method + " " + strings.ReplaceAll(request.URL.Path, c.namespace, "NS")
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen[name]++
	at := point{name, c.seen[name]}
	c.points = append(c.points, at)
	c.injected = c.injected || c.row != nil && c.row.at == at
	return at
}

// processed acts as the controller of Jobs, and counts the effects of the action.
func (c *counter) processed(request *http.Request) {
	switch {
	case request.URL.Query().Has("dryRun"):
	case request.Method == http.MethodPost && strings.HasSuffix(request.URL.Path, "/jobs"):
		c.finishJob()
		c.mu.Lock()
		c.jobs++
		c.mu.Unlock()
	case request.Method == http.MethodDelete && strings.Contains(request.URL.Path, "/persistentvolumeclaims/"):
		c.mu.Lock()
		c.claims.Insert(path.Base(request.URL.Path))
		c.mu.Unlock()
	}
}
