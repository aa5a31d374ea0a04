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

// Call is a request that passes through a Proxy.
type Call struct {
	// Method is the HTTP method, Path the path of the URL.
	Method, Path string
	// Name is the object's name, and empty for reads. A create request has the
	// name in its body; for custom resources it is not read. Release is the
	// status of the revision if the request contains a release record.
	Name, Release string
	// Watch reports whether the request is a watch.
	Watch bool
	// dry reports whether the request is a dry run.
	dry bool
}

// readCall parses a request. The request's body stays readable.
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
	// A patch is not an object, and the decoder supports only built-in kinds.
	object, _, err := scheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if err != nil {
		return call, nil //nolint:nilerr // the path is sufficient
	}
	if m, err := meta.Accessor(object); err == nil {
		call.Name = m.GetName()
		if m.GetLabels()["owner"] == "helm" {
			call.Release = m.GetLabels()["status"]
		}
	}
	return call, nil
}

// Write reports whether the request changes an object other than a lease or an
// event. Dry runs and access reviews change none.
func (c Call) Write() bool {
	switch c.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		return !c.dry && !c.leaseOrEvent() && !strings.HasSuffix(c.Path, "reviews")
	default:
		return false
	}
}

// leaseOrEvent reports whether the request concerns leases or events.
func (c Call) leaseOrEvent() bool {
	return strings.Contains(c.Path, "/leases") || strings.Contains(c.Path, "/events")
}

// discovery reports whether the request reads which kinds are served.
func (c Call) discovery() bool {
	parts := strings.Split(strings.Trim(c.Path, "/"), "/")
	return len(parts) < 3 || len(parts) == 3 && parts[0] == "apis" || parts[0] == "openapi"
}

// String describes the request for failure messages.
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

// errLost is the error of a proxy that drops a connection on purpose.
var errLost = errors.New("the connection was lost, on purpose")

// discard drops log messages about responses that the proxy lost on purpose.
var discard = log.New(io.Discard, "", 0)
