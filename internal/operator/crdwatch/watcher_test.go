package crdwatch

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/operator/permissions"
	"github.com/chartwright/chartwright/internal/testenv"
)

// connected is a manager that only has the connection to an API server.
type connected struct {
	manager.Manager

	config *rest.Config
	client *http.Client
}

func (c connected) GetConfig() *rest.Config        { return c.config }
func (c connected) GetHTTPClient() *http.Client    { return c.client }
func (c connected) GetLogger() logr.Logger         { return logr.Discard() }
func (c connected) GetRESTMapper() meta.RESTMapper { return meta.NewDefaultRESTMapper(nil) }

// TestWatcher_SignalsEachChange sends one event of a watch at a time.
func TestWatcher_SignalsEachChange(t *testing.T) {
	events := make(chan string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") == "" {
			fmt.Fprint(w, `{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": {"resourceVersion": "1"}}`)
			return
		}
		flush := http.NewResponseController(w)
		for {
			if err := flush.Flush(); err != nil {
				t.Error(err)
			}
			select {
			case event := <-events:
				fmt.Fprintln(w, event)
			case <-r.Context().Done():
				return
			}
		}
	}))
	defer server.Close()
	w := NewWatcher(Config{
		Manager:     connected{config: &rest.Config{Host: server.URL}, client: server.Client()},
		Kinds:       func() []catalog.Kind { return nil },
		Permissions: &permissions.Checker{}, OnPause: func(string, bool) {},
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Start(ctx) }()
	testenv.Receive(t, "the list of CRDs", w.Known())
	for i, event := range []string{"ADDED", "MODIFIED", "DELETED"} {
		events <- fmt.Sprintf(`{"type": %q, "object": {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "webs.example.com", "uid": "u", "resourceVersion": "%d"}}}`, event, i+2)
		testenv.Receive(t, "the change after "+event, w.Changes())
	}
	cancel()
	if err := testenv.Receive(t, "the end", ended); err != nil {
		t.Error(err)
	}
}
