package operator

import (
	"net/http"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// maxWarnings bounds the warnings that are remembered. A warning may quote a
// field of an object, so that there may be any number of them.
const maxWarnings = 1000

// warningCode is the only code of warnings that Kubernetes defines.
const warningCode = 299

// warnings logs what the API server warns of, such as a deprecated API version.
// The API server repeats a warning in every response; it is logged once for each
// resource.
type warnings struct {
	logger logr.Logger

	mu     sync.Mutex
	logged map[warning]bool
}

type warning struct {
	resource schema.GroupResource
	text     string
}

func newWarnings(logger logr.Logger) *warnings {
	return &warnings{logger: logger, logged: map[warning]bool{}}
}

// heed returns a transport that logs the warnings in responses.
func (w *warnings) heed(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(request *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(request)
		if err == nil && len(response.Header["Warning"]) > 0 {
			w.log(resourceIn(request.URL.Path), response.Header["Warning"])
		}
		return response, err
	})
}

func (w *warnings) log(resource schema.GroupResource, headers []string) {
	// What cannot be parsed is left out.
	parsed, _ := utilnet.ParseWarningHeaders(headers)
	for _, header := range parsed {
		if header.Code == warningCode && header.Text != "" && w.isNew(warning{resource, header.Text}) {
			w.logger.Info("warning of the API server", "resource", resource.String(), "warning", header.Text)
		}
	}
}

// isNew reports whether a warning was not logged before.
func (w *warnings) isNew(found warning) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.logged[found] || len(w.logged) == maxWarnings {
		return false
	}
	w.logged[found] = true
	return true
}

// resourceIn returns the resource of a request's path, empty where it has none.
func resourceIn(path string) schema.GroupResource {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	group := ""
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		group, parts = parts[1], parts[3:]
	default:
		return schema.GroupResource{}
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	return schema.GroupResource{Group: group, Resource: parts[0]}
}
