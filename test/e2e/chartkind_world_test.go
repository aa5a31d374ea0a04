package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/google/go-containerregistry/pkg/registry"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/test/e2e/harness"
)

// ociRegistry is an OCI registry on this machine, without TLS.
type ociRegistry struct {
	env    *harness.Env
	server *httptest.Server
	host   string
	// private requires the credentials.
	private atomic.Bool
}

// The credentials of a private registry.
const (
	canaryUser     = "canary-user-6a1e"
	canaryPassword = "canary-password-93bd"
)

func startRegistry(env *harness.Env) *ociRegistry {
	env.T().Helper()
	r := &ociRegistry{env: env}
	charts := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	r.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		user, password, _ := request.BasicAuth()
		if r.private.Load() && (user != canaryUser || password != canaryPassword) {
			w.Header().Set("WWW-Authenticate", `Basic realm="charts"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		charts.ServeHTTP(w, request)
	}))
	env.T().Cleanup(r.server.Close)
	r.host = r.server.Listener.Addr().String()
	return r
}

// stop ends the registry: no network.
func (r *ociRegistry) stop() { r.server.Close() }

// push packs the chart plain with another version and edits, and pushes it as users do.
func (r *ociRegistry) push(version string, edits map[string][2]string) {
	r.env.T().Helper()
	all := map[string][2]string{"Chart.yaml": {"version: 1.2.3", "version: " + version}}
	maps.Copy(all, edits)
	packed := r.env.T().TempDir()
	r.env.Helm("package", copyChart(r.env, harness.Chart("plain"), all), "--destination", packed)
	r.env.Helm("push", filepath.Join(packed, "plain-"+version+".tgz"), "oci://"+r.host+"/charts", "--plain-http")
}

// serveKettle starts an operator with a ChartKind for version 1.0.0, and waits until a
// custom resource of the kind is ready.
func (r *ociRegistry) serveKettle() (operator *harness.Operator, ck, web *unstructured.Unstructured) {
	r.env.T().Helper()
	kind := r.env.NewKind("Kettle")
	r.push("1.0.0", nil)
	operator = r.operator(harness.Options{}, kind)
	ck = createChartKind(r.env, kind, r.chart(), nil)
	waitChartKind(r.env, ck, "Ready", "Serving", "plain 1.0.0")
	web = harness.MakeCR(kind, "web").Set("message", "one").Obj()
	r.env.Create(web)
	r.env.WaitReady(web)
	return operator, ck, web
}

// chart returns the spec.chart of a ChartKind.
func (r *ociRegistry) chart() map[string]any {
	return map[string]any{"oci": "oci://" + r.host + "/charts/plain", "interval": "5s"}
}

// operator starts an operator that serves ChartKinds, with the permissions for kinds with the
// chart plain.
func (r *ociRegistry) operator(options harness.Options, kinds ...harness.Kind) *harness.Operator {
	r.env.T().Helper()
	installChartKinds(r.env)
	entries := make([]harness.Entry, len(kinds))
	for i, kind := range kinds {
		entries[i] = harness.MakeEntry(kind, harness.Chart("plain"))
	}
	options.ChartKinds = r.env.Watches(entries...)
	options.Args = append(options.Args, "--chart-hosts=http://"+r.host)
	return r.env.NewOperator(options).Start()
}

// installChartKinds installs the CRD of ChartKinds, which tests share.
func installChartKinds(env *harness.Env) {
	env.T().Helper()
	env.Kubectl("apply", "--server-side", "--force-conflicts", "-f", harness.Root("config", "chartkinds", "crd.yaml"))
	env.Wait("ChartKinds to be served", func(context.Context) error {
		_, err := env.TryKubectl("get", "chartkinds")
		return err
	})
}

// makeChartKind returns a ChartKind for the operator of the test.
func makeChartKind(env *harness.Env, kind harness.Kind, chart map[string]any, more map[string]any) *unstructured.Unstructured {
	spec := map[string]any{
		"operator": env.Namespace, "chart": chart, "installCRD": true,
		"names": map[string]any{"group": kind.Group, "version": kind.Version, "kind": kind.Kind},
	}
	maps.Copy(spec, more)
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "chartwright.dev/v1alpha1", "kind": "ChartKind", "metadata": map[string]any{"name": strings.ToLower(kind.Kind) + "." + env.Namespace}, "spec": spec,
	}}
}

// createChartKind creates a ChartKind, and deletes it with its CRD after the test.
func createChartKind(env *harness.Env, kind harness.Kind, chart map[string]any, more map[string]any) *unstructured.Unstructured {
	env.T().Helper()
	ck := makeChartKind(env, kind, chart, more)
	env.Create(ck)
	env.T().Cleanup(func() {
		for _, args := range [][]string{
			{"patch", "chartkind", ck.GetName(), "--type=merge", `--patch={"metadata":{"finalizers":null}}`},
			{"delete", "chartkind", ck.GetName(), "--ignore-not-found"},
			{"delete", "crd", kind.Resource(), "--ignore-not-found", "--wait=false"},
		} {
			// The operator may have deleted it.
			_, _ = env.TryKubectl(args...)
		}
	})
	return ck
}

// waitChartKind waits for a condition with a reason and a part of its message.
func waitChartKind(env *harness.Env, ck *unstructured.Unstructured, condition, reason, message string) *metav1.Condition {
	env.T().Helper()
	var found *metav1.Condition
	env.Wait(fmt.Sprintf("ChartKind %s to have %s %s", ck.GetName(), condition, reason), func(ctx context.Context) error {
		live, err := env.At(ck).Get(ctx, ck.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		var status struct {
			Conditions []metav1.Condition `json:"conditions"`
		}
		if of, ok := live.Object["status"].(map[string]any); ok {
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(of, &status); err != nil {
				return err
			}
		}
		found = meta.FindStatusCondition(status.Conditions, condition)
		if found == nil || found.Reason != reason || !strings.Contains(found.Message, message) || found.ObservedGeneration != live.GetGeneration() {
			text, err := json.Marshal(status.Conditions)
			return errors.Join(fmt.Errorf("conditions: %s", text), err)
		}
		return nil
	})
	return found
}

// expectNoCanary searches everything that the operator has written for the credentials.
func expectNoCanary(env *harness.Env, operator *harness.Operator, ck *unstructured.Unstructured) {
	env.T().Helper()
	texts := map[string]string{
		"log":    operator.Log(),
		"status": env.Kubectl("get", "chartkind", ck.GetName(), "-o", "yaml"),
		"events": env.Kubectl("get", "events", "--all-namespaces", "-o", "yaml", "--field-selector", "involvedObject.name="+ck.GetName()),
	}
	for where, text := range texts {
		for _, canary := range []string{canaryPassword, canaryUser} {
			if strings.Contains(text, canary) {
				env.T().Errorf("the %s contains %s", where, canary)
			}
		}
	}
}

// mergePatch changes an object.
func mergePatch(env *harness.Env, object *unstructured.Unstructured, patch string, subresources ...string) {
	env.T().Helper()
	if _, err := env.At(object).Patch(env.T().Context(), object.GetName(), types.MergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...); err != nil {
		env.T().Fatal(err)
	}
}
