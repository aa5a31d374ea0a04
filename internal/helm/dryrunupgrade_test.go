package helm

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/release"
)

// DryRunUpgrade renders an upgrade of the stored release on the current cluster and
// writes nothing.
func TestDryRunUpgrade(t *testing.T) {
	w := newWorld(t)
	loaded := files{
		"Chart.yaml":         "apiVersion: v2\nname: small\nversion: 1.0.0\n",
		"values.schema.json": `{"properties": {"size": {"type": "integer"}}}`,
		"templates/a.yaml": `apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}
data:
  size: {{ .Values.size | quote }}
  revision: "{{ .Release.Revision }} {{ .Release.IsUpgrade }}"
  minor: {{ .Capabilities.KubeVersion.Minor | quote }}
  apps: {{ .Capabilities.APIVersions.Has "apps/v1/Deployment" | quote }}
  found: {{ (lookup "v1" "ConfigMap" .Release.Namespace "theirs").data.word | quote }}
`,
	}.load(t)
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "theirs"}, Data: map[string]string{"word": "hello"}}
	if _, err := w.plain.CoreV1().ConfigMaps(w.namespace).Create(t.Context(), theirs, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := w.helm.Install(t.Context(), w.request(loaded, "one", map[string]any{"size": int64(1)})); err != nil {
		t.Fatal(err)
	}
	secret, err := w.plain.CoreV1().Secrets(w.namespace).Get(t.Context(), release.SecretName("web", 1), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	stored, err := release.ReadRecord(secret)
	if err != nil {
		t.Fatal(err)
	}
	version, err := w.plain.Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	trial := Trial{Over: stored, Newest: 4, Values: map[string]any{"size": int64(2)}, Config: apiServer.config}
	rendered, err := DryRunUpgrade(t.Context(), loaded, trial)
	if err != nil {
		t.Fatal(err)
	}
	data, ok := rendered.Objects[0].Object["data"].(map[string]any)
	if !ok || data["size"] != "2" || data["revision"] != "5 true" || data["minor"] != version.Minor || data["apps"] != "true" || data["found"] != "hello" {
		t.Errorf("the rendered objects are %v", rendered.Objects[0].Object)
	}
	if got := strings.Join(w.statuses(), ", "); got != "v1 deployed" {
		t.Errorf("the release has %s", got)
	}
	if maps := strings.Join(w.configMaps(), ", "); strings.Contains(maps, "size=2") {
		t.Errorf("the cluster has %s", maps)
	}

	trial.Values = map[string]any{"size": "much"}
	if _, err := DryRunUpgrade(t.Context(), loaded, trial); !errors.Is(err, chart.ErrInvalidValues) {
		t.Errorf("values that the schema rejects: %v", err)
	}
}
