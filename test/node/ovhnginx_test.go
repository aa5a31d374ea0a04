package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// toolsImage has a shell and curl.
const toolsImage = "node.local/tools:1"

func TestOvhNginx_Serves(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.apply(ovhNginx(1))
	e.waitReady("ovhnginx/web")

	if err := request(e.Context(), newClient(), e.balancer("web")); err != nil {
		t.Errorf("by the address of the load balancer: %v", err)
	}
	code := e.runPod("client", toolsImage, "curl", "--silent", "--show-error", "--max-time", "10", "--output", "/dev/null",
		"--write-out", "%{http_code}", "http://web."+e.namespace+".svc.cluster.local")
	if code != "200" {
		t.Errorf("by the name of the Service: status %q, want 200", code)
	}
	if uid := e.exec("deployment/web", "id", "-u"); uid != "101" {
		t.Errorf("nginx runs as user %s, want 101", uid)
	}
	if out, err := e.tryExec("deployment/web", "touch", "/file"); err == nil || !strings.Contains(err.Error(), "Read-only file system") {
		t.Errorf("touch /file: %s %v, want a read-only file system", out, err)
	}
}

// TestOvhNginx_RollingUpdatesLoseNoRequest counts requests during two rolling
// updates and a scale-down.
func TestOvhNginx_RollingUpdatesLoseNoRequest(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.apply(ovhNginx(2))
	e.waitReady("ovhnginx/web")
	load := startLoad(e, e.balancer("web"))

	for _, patch := range []string{
		`{"spec":{"podAnnotations":{"round":"1"}}}`,
		`{"spec":{"podAnnotations":{"round":"2"}}}`,
		`{"spec":{"replicaCount":1}}`,
	} {
		e.patch("ovhnginx/web", patch)
		e.waitReady("ovhnginx/web")
		e.eventually(readyTimeout, "old pods are gone", func() error {
			pods, err := e.tryKubectl("get", "pods", "--output", "jsonpath={.items[*].metadata.deletionTimestamp}")
			if err == nil && pods != "" {
				err = errors.New("pods are being deleted")
			}
			return err
		})
	}
	total, failed := load.stop()
	t.Logf("%d requests, %d failed", total, len(failed))
	if total < 200 {
		t.Errorf("only %d requests in total: the load was too low for this test", total)
	}
	if len(failed) > 0 {
		t.Errorf("%d of %d requests failed; the first: %v", len(failed), total, failed[0])
	}
}

func ovhNginx(replicas int) string {
	return fmt.Sprintf(`
apiVersion: tutorials.ovhcloud.com/v1
kind: OvhNginx
metadata: {name: web}
spec: {port: 80, replicaCount: %d}`, replicas)
}

// balancer returns the URL of a Service of type LoadBalancer.
func (e *env) balancer(service string) string {
	e.Helper()
	e.wait("service/"+service, "jsonpath={.status.loadBalancer.ingress[0].ip}", readyTimeout)
	return "http://" + e.get("service/"+service, "{.status.loadBalancer.ingress[0].ip}:{.spec.ports[0].port}")
}

// newClient returns a client that opens a connection for each request, so that
// each request can reach another pod.
func newClient() *http.Client {
	return &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
}

// request returns an error unless the response is complete and has status 200.
func request(ctx context.Context, client *http.Client, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := client.Do(req)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("status %s", response.Status)
	}
	return nil
}

// load sends requests until it is stopped.
type load struct {
	stopped chan struct{}
	workers sync.WaitGroup
	mutex   sync.Mutex
	total   int
	failed  []error
}

// startLoad starts clients that send requests with a short pause.
func startLoad(e *env, url string) *load {
	const (
		clients = 4
		pause   = 20 * time.Millisecond
	)
	l := &load{stopped: make(chan struct{})}
	for range clients {
		l.workers.Go(func() {
			client := newClient()
			for {
				select {
				case <-l.stopped:
					return
				case <-time.After(pause):
				}
				err := request(e.Context(), client, url)
				l.mutex.Lock()
				l.total++
				if err != nil {
					l.failed = append(l.failed, err)
				}
				l.mutex.Unlock()
			}
		})
	}
	return l
}

// stop waits for the last requests and returns their number and the errors.
func (l *load) stop() (total int, failed []error) {
	close(l.stopped)
	l.workers.Wait()
	return l.total, l.failed
}
