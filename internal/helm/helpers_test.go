package helm

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/chartwright/chartwright/internal/chart"
	"github.com/chartwright/chartwright/internal/helm/engine"
	"github.com/chartwright/chartwright/internal/release/signing"
)

// files holds the files of a chart by path.
type files map[string]string

func (f files) fs() fstest.MapFS {
	fsys := fstest.MapFS{}
	for name, content := range f {
		fsys[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return fsys
}

// with returns a copy with one more file.
func (f files) with(name, content string) files {
	more := maps.Clone(f)
	more[name] = content
	return more
}

func (f files) load(t testing.TB) *chart.Chart {
	t.Helper()
	c, err := chart.LoadDir(f.fs())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// small returns a chart with one ConfigMap.
func small() files {
	return files{
		"Chart.yaml":             "apiVersion: v2\nname: small\nversion: 1.2.3\nappVersion: '9'\n",
		"values.yaml":            "greeting: hello\n",
		"templates/_helpers.tpl": `{{ define "small.name" }}{{ .Release.Name }}-small{{ end }}`,
		"templates/config.yaml":  "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ include \"small.name\" . }}\ndata:\n  greeting: {{ .Values.greeting | quote }}\n",
		"templates/NOTES.txt":    "It says {{ .Values.greeting }}.\n",
	}
}

// aRelease returns a release with all fields set.
func aRelease() *engine.Release {
	at := engine.At(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	return &engine.Release{
		Name:      "web",
		Namespace: "apps",
		Version:   3,
		Manifest:  "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n",
		Config:    map[string]any{"replicas": float64(2), "nothing": nil},
		Labels:    map[string]string{"team": "a", "chartwright.dev/revision": "3"},
		Info: &engine.Info{
			FirstDeployed: at, LastDeployed: at,
			Status: engine.StatusDeployed, Description: "Upgrade complete", Notes: "Enjoy.",
		},
		Hooks: []*engine.Hook{{
			Name: "job", Kind: "Job", Path: "small/templates/job.yaml", Manifest: "kind: Job\n",
			Events: []engine.HookEvent{engine.HookPreInstall}, Weight: 3,
			LastRun: engine.HookExecution{StartedAt: at, CompletedAt: at, Phase: engine.HookPhaseSucceeded},
		}},
		Chart: &engine.Chart{
			Metadata: &engine.Metadata{Name: "small", Version: "1.2.3", AppVersion: "9", APIVersion: "v2"},
			Values:   map[string]any{"greeting": "hello"},
		},
	}
}

// testKeys holds the signing key of all tests.
var testKeys = newTestKeys("k")

func newTestKeys(letter string) *signing.Keys {
	keys := &signing.Keys{}
	if err := keys.Set([]byte(strings.Repeat(letter, signing.MinKey)), nil); err != nil {
		panic(err)
	}
	return keys
}

// warnFunc is a Notifier for warnings.
type warnFunc func(reason, message string)

func (f warnFunc) Warn(reason, message string) { f(reason, message) }

func (warnFunc) HookStarted(wait HookWait) func(bool) string { return NoOp{}.HookStarted(wait) }

// writes returns the requests that are neither reads nor dry runs.
func writes(requests []string) []string {
	return slices.DeleteFunc(slices.Clone(requests), func(r string) bool {
		return strings.HasPrefix(r, http.MethodGet+" ") || strings.HasPrefix(r, dryRun+" ")
	})
}

// Warn does nothing.
func (NoOp) Warn(string, string) {}

// HookStarted does nothing.
func (NoOp) HookStarted(HookWait) func(bool) string { return func(bool) string { return "" } }

// Redact returns the text.
func (NoOp) Redact(text string) string { return text }

// RedactParts returns the text.
func (NoOp) RedactParts(text string) string { return text }

// AddStoredValues does nothing.
func (NoOp) AddStoredValues(map[string]any) {}

// AddSecret does nothing.
func (NoOp) AddSecret(map[string]any) {}
