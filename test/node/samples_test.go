package node

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// sampleChanges are changes of the specs of the samples: one that scales, if the
// kind can be scaled, and one that edits.
var sampleChanges = map[string]struct{ scale, edit string }{
	"podset":       {`{"replicas":1}`, `{"podAnnotations":{"edited":"yes"}}`},
	"ovhnginx":     {`{"replicaCount":2}`, `{"podAnnotations":{"edited":"yes"}}`},
	"experimental": {`{"numberOfReplicas":2}`, `{"podAnnotations":{"edited":"yes"}}`},
	"config":       {`{"replicas":2}`, `{"profile":"basic"}`},
	"addon":        {"", `{"params":[{"name":"clusterTasks","value":"true"},{"name":"pipelineTemplates","value":"false"}]}`},
	"clusteraddon": {"", `{"params":[{"name":"pipelineTemplates","value":"false"}]}`},
}

// elsewhere are the samples that need a preparation. Other tests of this package
// create their kinds.
var elsewhere = []string{"vmgroup", "database"}

// TestSamples applies the samples as they are, and changes them as their users
// do.
func TestSamples(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(repository, "config", "samples", "*_v*_*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("config/samples contains no custom resources (%v)", err)
	}
	for _, file := range files {
		_, kind, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".yaml"), "_v")
		_, kind, _ = strings.Cut(kind, "_")
		if slices.Contains(elsewhere, kind) {
			continue
		}
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			changes, known := sampleChanges[kind]
			if !known {
				t.Fatalf("%s: add changes of its spec to sampleChanges", file)
			}
			e := newEnv(t)
			s := readSample(e, file)
			e.apply(s.manifest)
			e.waitReady(s.object)
			e.runTests(s)

			if changes.scale != "" {
				e.change(s.object, changes.scale)
			}
			e.change(s.object, changes.edit)
			e.rollBack(s.object)

			e.delete(s.object)
			if s.namespace != "" {
				e.wait("namespace/"+s.namespace, "delete", readyTimeout)
			}
			e.eventually(readyTimeout, "nothing is left in the namespace", e.empty)
		})
	}
}

// change changes the spec of a custom resource, and waits for the new revision.
func (e *env) change(object, spec string) {
	e.Helper()
	before := e.revision(object)
	e.patch(object, `{"spec":`+spec+`}`)
	e.waitReady(object)
	if after := e.revision(object); after != before+1 {
		e.Errorf("%s led from revision %d to %d, want one more", spec, before, after)
	}
}

// rollBack rolls a custom resource back to its previous revision, and waits for the
// new revision.
func (e *env) rollBack(object string) {
	e.Helper()
	before := e.revision(object)
	e.annotate(object, "chartwright.dev/rollback-to=previous")
	e.waitCondition(object, "Held", "True", readyTimeout)
	e.waitReady(object)
	if after := e.revision(object); after != before+1 {
		e.Errorf("the rollback of %s led from revision %d to %d, want one more", object, before, after)
	}
}

// runTests runs the tests of the chart, if it has any.
func (e *env) runTests(s sample) {
	e.Helper()
	tests, err := filepath.Glob(filepath.Join(repository, "charts", s.kind, "templates", "tests", "*"))
	if err != nil {
		e.Fatal(err)
	}
	if len(tests) == 0 {
		return
	}
	before := e.revision(s.object)
	e.annotate(s.object, "chartwright.dev/test=now")
	e.waitCondition(s.object, "Tested", "True", readyTimeout)
	if after := e.revision(s.object); after != before {
		e.Errorf("the tests of the chart led from revision %d to %d", before, after)
	}
}

// sample is a custom resource below config/samples.
type sample struct {
	manifest string
	// kind is in lower case, like the name of the chart.
	kind string
	// object is the argument for kubectl.
	object string
	// namespace is created for the custom resource, if it is not empty.
	namespace string
}

func readSample(e *env, file string) sample {
	e.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		e.Fatal(err)
	}
	var resource struct {
		Kind     string `json:"kind"`
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Spec struct {
			TargetNamespace string `json:"targetNamespace"`
		} `json:"spec"`
	}
	if err := yaml.Unmarshal(raw, &resource); err != nil {
		e.Fatal(err)
	}
	kind := strings.ToLower(resource.Kind)
	return sample{manifest: string(raw), kind: kind, object: kind + "/" + resource.Metadata.Name, namespace: resource.Spec.TargetNamespace}
}
