package health

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"
)

// traced is a list of kinds with statuses that their controller writes, see
// testdata/traces/README.md.
type traced struct {
	APIVersion string         `json:"apiVersion"`
	Kinds      []string       `json:"kinds"`
	Spec       map[string]any `json:"spec"`
	Trace      []state        `json:"trace"`
}

type state struct {
	State       string            `json:"state"`
	Is          string            `json:"is"`
	Generation  int64             `json:"generation"`
	Annotations map[string]string `json:"annotations"`
	Spec        map[string]any    `json:"spec"`
	Status      any               `json:"status"`
}

var createdAt = time.Date(2026, 5, 6, 7, 8, 9, 0, time.UTC)

// object returns an object in the given state, as a watch delivers it.
func (k traced) object(t *testing.T, kind string, s state) *unstructured.Unstructured {
	t.Helper()
	metadata := map[string]any{"name": "web", "namespace": "default", "generation": int64(2), "creationTimestamp": createdAt.Format(time.RFC3339)}
	if s.Generation != 0 {
		metadata["generation"] = s.Generation
	}
	if s.Annotations != nil {
		metadata["annotations"] = s.Annotations
	}
	content := map[string]any{"apiVersion": k.APIVersion, "kind": kind, "metadata": metadata, "spec": k.Spec}
	if s.Spec != nil {
		content["spec"] = s.Spec
	}
	if s.Status != nil {
		content["status"] = s.Status
	}
	data, err := yaml.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, string(data))
}

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{}
	if err := o.UnmarshalJSON(data); err != nil {
		t.Fatal(err)
	}
	return o
}

// traces returns the contents of the files in testdata/traces by file name.
func traces(t *testing.T) map[string][]traced {
	t.Helper()
	files, err := filepath.Glob("testdata/traces/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no traces: %v", err)
	}
	all := map[string][]traced{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var kinds []traced
		if err := yaml.UnmarshalStrict(data, &kinds); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all[filepath.Base(file)] = kinds
	}
	return all
}

// named returns the name of a result in the traces.
func named(r Result) string {
	switch {
	case r.Ready && r.Reason == ReasonSuspended:
		return "suspended"
	case r.Ready:
		return "ready"
	case r.Failed:
		return "failed"
	case r.Silent:
		return "silent"
	case r.OpenEnded:
		return "waiting"
	default:
		return "progressing"
	}
}

func TestEvaluate_Traces(t *testing.T) {
	for file, kinds := range traces(t) {
		for _, k := range kinds {
			for _, kind := range k.Kinds {
				for _, s := range k.Trace {
					t.Run(file+"/"+k.APIVersion+"/"+kind+"/"+s.State, func(t *testing.T) {
						got := Evaluate(k.object(t, kind, s), Kind{})
						if named(got) != s.Is {
							t.Errorf("got %s (%+v), want %s", named(got), got, s.Is)
						}
						if !got.Ready && (got.Reason == "" || got.Message == "") {
							t.Errorf("no reason or no message: %+v", got)
						}
						if got.OpenEnded && got.Failed {
							t.Errorf("both open-ended and failed: %+v", got)
						}
					})
				}
			}
		}
	}
}

// Each kind that is not always ready needs a trace with a ready state and another state.
func TestTraces_CoverTable(t *testing.T) {
	type seen struct{ ready, other bool }
	covered := map[*entry]map[string]*seen{}
	for _, kinds := range traces(t) {
		for _, k := range kinds {
			for _, kind := range k.Kinds {
				e := lookup(schema.FromAPIVersionAndKind(k.APIVersion, kind).GroupKind())
				if e == nil {
					continue
				}
				if covered[e] == nil {
					covered[e] = map[string]*seen{}
				}
				if covered[e][kind] == nil {
					covered[e][kind] = &seen{}
				}
				for _, s := range k.Trace {
					covered[e][kind].ready = covered[e][kind].ready || s.Is == "ready"
					covered[e][kind].other = covered[e][kind].other || s.Is != "ready"
				}
			}
		}
	}
	for i := range table {
		e := &table[i]
		if e.always {
			continue
		}
		kinds := e.kinds
		for kind := range covered[e] {
			if !slices.Contains(kinds, kind) {
				kinds = append(slices.Clone(kinds), kind)
			}
		}
		if len(kinds) == 0 {
			t.Errorf("%s: no trace", e.group)
		}
		for _, kind := range kinds {
			if s := covered[e][kind]; s == nil || !s.ready || !s.other {
				t.Errorf("%s of %s: no trace with a state that is ready and one that is not", kind, e.group)
			}
		}
	}
}
