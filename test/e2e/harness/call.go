package harness

import (
	"bytes"
	"errors"
	"io"
	"log"
	"net/http"
	"path"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/kubernetes/scheme"
)

// Call is one request as a Proxy sees it.
type Call struct {
	// Method is that of HTTP, Path that of the URL.
	Method, Path string
	// Name is that of the object, also where the path has none yet, and Release
	// the status of the revision whose record it is.
	Name, Release string
	// Watch tells whether the answer has no end.
	Watch bool
	// dry: nothing is stored.
	dry bool
}

// readCall reads what is to be known of a request, and leaves its body whole.
func readCall(r *http.Request) (Call, error) {
	query := r.URL.Query()
	call := Call{
		Method: r.Method, Path: r.URL.Path,
		Watch: query.Get("watch") == "true" || query.Get("watch") == "1",
		dry:   query.Has("dryRun"),
	}
	if !call.Write() {
		return call, nil
	}
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return call, err
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	if r.Method != http.MethodPost {
		call.Name = path.Base(strings.TrimSuffix(r.URL.Path, "/status"))
	}
	// A patch is no object, and neither is one of a kind of the test's own.
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		return call, nil //nolint:nilerr // the path alone tells of it, then
	}
	if m, err := meta.Accessor(object); err == nil {
		call.Name = m.GetName()
		if m.GetLabels()["owner"] == "helm" {
			call.Release = m.GetLabels()["status"]
		}
	}
	return call, nil
}

// Write tells whether the request is to change something that matters: leases
// and events are not what an operator is judged by.
func (c Call) Write() bool {
	switch c.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		return !c.dry && !c.aside() && !strings.HasSuffix(c.Path, "reviews")
	default:
		return false
	}
}

// aside tells whether the request is about leases or events.
func (c Call) aside() bool {
	return strings.Contains(c.Path, "/leases") || strings.Contains(c.Path, "/events")
}

// String names the request for people.
func (c Call) String() string {
	parts := strings.Split(strings.Trim(c.Path, "/"), "/")
	what := parts[len(parts)-1]
	if what == "status" {
		what = parts[len(parts)-3] + "/status"
	} else if c.Method != http.MethodPost && len(parts) > 1 {
		what = parts[len(parts)-2]
	}
	text := c.Method + " " + what
	if c.Name != "" {
		text += " " + c.Name
	}
	if c.Release != "" {
		text += " (" + c.Release + ")"
	}
	return text
}

// errLost is why a proxy gives no answer.
var errLost = errors.New("the connection was lost, as planned")

// discard is for what a proxy would say of answers that it lost on purpose.
var discard = log.New(io.Discard, "", 0)
