package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/clientcmd"
	sigsyaml "sigs.k8s.io/yaml"
)

const (
	// floorManager is the floor's field manager, and the name of its finalizer.
	floorManager   = "floor"
	floorFinalizer = "bench.test/floor"
	// concurrency is the number of custom resources that the floor processes
	// concurrently, the same as the operator's default number of concurrent
	// actions.
	concurrency = 16
	// recordSize is the size of a compressed release record of the chart.
	recordSize = 1200
)

// newFloor returns the hidden command that runs the floor.
func newFloor() *cobra.Command {
	var kubeconfig, manifest string
	var repair bool
	cmd := &cobra.Command{
		Use:    "floor",
		Short:  "Write the same objects as an operator, and nothing else",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
			if err != nil {
				return err
			}
			config.QPS = -1
			client, err := dynamic.NewForConfig(config)
			if err != nil {
				return err
			}
			templates, err := readTemplates(manifest)
			if err != nil {
				return err
			}
			f := &floor{client: client, templates: templates, out: cmd.OutOrStdout(), done: map[types.UID]*progress{}, slots: make(chan struct{}, concurrency)}
			if !repair {
				return f.run(cmd.Context())
			}
			about, err := metadata.NewForConfig(config)
			if err != nil {
				return err
			}
			r := &repairer{floor: f, metadata: about, crs: map[name]*unstructured.Unstructured{}, held: map[object]string{}}
			return r.run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig `file`")
	cmd.Flags().StringVar(&manifest, "manifest", "", "`file` with the objects of one custom resource")
	cmd.Flags().BoolVar(&repair, "repair", false, "only correct drift")
	return cmd
}

// floor is a bare client: it writes the objects, a record, and the finalizer
// and status of the custom resource with one request each, and reads nothing.
type floor struct {
	client    dynamic.Interface
	templates []template
	out       io.Writer
	slots     chan struct{}

	mu   sync.Mutex
	done map[types.UID]*progress
}

// progress is the state of one custom resource. Its actions run one at a time.
type progress struct {
	busy       sync.Mutex
	generation int64
	deleting   bool
	// records is the number of records.
	records int64
}

// template is an object that can be written for any custom resource.
type template struct {
	resource schema.GroupVersionResource
	// edited reports whether an edit changes the object.
	edited bool
	body   []byte
}

var resources = map[string]schema.GroupVersionResource{
	"ServiceAccount": {Version: "v1", Resource: "serviceaccounts"},
	"ConfigMap":      {Version: "v1", Resource: "configmaps"},
	"Service":        {Version: "v1", Resource: "services"},
	"Deployment":     {Group: "apps", Version: "v1", Resource: "deployments"},
}

var secrets = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

// readTemplates reads the file written by renderManifest.
func readTemplates(file string) ([]template, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var templates []template
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		body, err := sigsyaml.YAMLToJSON(document)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		if string(body) == "null" {
			continue
		}
		var about metav1.TypeMeta
		if err := sigsyaml.Unmarshal(body, &about); err != nil {
			return nil, err
		}
		resource, known := resources[about.Kind]
		if !known {
			return nil, fmt.Errorf("%s: the floor does not support kind %s", file, about.Kind)
		}
		templates = append(templates, template{resource, bytes.Contains(body, []byte(someMessage)), body})
	}
	if len(templates) != chartObjects {
		return nil, fmt.Errorf("%s has %d objects: expected %d", file, len(templates), chartObjects)
	}
	return templates, nil
}

// of returns the object for one custom resource.
func (t template) of(cr *unstructured.Unstructured) []byte {
	message, _, _ := unstructured.NestedString(cr.Object, "spec", "message")
	body := bytes.ReplaceAll(t.body, []byte(someName), []byte(cr.GetName()))
	body = bytes.ReplaceAll(body, []byte(someNamespace), []byte(cr.GetNamespace()))
	return bytes.ReplaceAll(body, []byte(someMessage), []byte(message))
}

func (f *floor) run(ctx context.Context) error {
	return watchAll(ctx, f.client.Resource(benches), func(cr *unstructured.Unstructured, gone bool) {
		if !gone {
			f.reconcile(ctx, cr)
		}
	})
}

// reconcile starts the next action for a custom resource, unless one is
// running.
func (f *floor) reconcile(ctx context.Context, cr *unstructured.Unstructured) {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := f.done[cr.GetUID()]
	if p == nil {
		p = &progress{}
		f.done[cr.GetUID()] = p
	}
	var do func(context.Context, *unstructured.Unstructured, *progress) error
	switch {
	case p.deleting:
		return
	case cr.GetDeletionTimestamp() != nil:
		p.deleting = true
		do = f.uninstall
	case p.generation >= cr.GetGeneration():
		return
	case p.generation == 0:
		do = f.install
	default:
		do = f.upgrade
	}
	p.generation = cr.GetGeneration()
	go func() {
		// An earlier action for the same resource holds a slot already.
		p.busy.Lock()
		defer p.busy.Unlock()
		f.slots <- struct{}{}
		defer func() { <-f.slots }()
		if err := do(ctx, cr, p); err != nil {
			fmt.Fprintf(f.out, "%s/%s: %v\n", cr.GetNamespace(), cr.GetName(), err) //nolint:errcheck // there is no other output
		}
	}()
}

func (f *floor) install(ctx context.Context, cr *unstructured.Unstructured, p *progress) error {
	if err := f.finalizers(ctx, cr, floorFinalizer); err != nil {
		return err
	}
	return f.revise(ctx, cr, p, func(template) bool { return true })
}

func (f *floor) upgrade(ctx context.Context, cr *unstructured.Unstructured, p *progress) error {
	return f.revise(ctx, cr, p, func(t template) bool { return t.edited })
}

// revise writes a record, the objects and the status.
func (f *floor) revise(ctx context.Context, cr *unstructured.Unstructured, p *progress, which func(template) bool) error {
	p.records++
	if err := f.record(ctx, cr, p.records); err != nil {
		return err
	}
	for _, t := range f.templates {
		if !which(t) {
			continue
		}
		if err := f.apply(ctx, t, cr); err != nil {
			return err
		}
	}
	status := fmt.Appendf(nil, `{"status":{"observedGeneration":%d,"conditions":[{"type":"Ready","status":"True","reason":"Deployed",`+
		`"message":"Revision %d is deployed","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`, cr.GetGeneration(), p.records)
	_, err := f.client.Resource(benches).Namespace(cr.GetNamespace()).Patch(ctx, cr.GetName(), types.MergePatchType, status, metav1.PatchOptions{}, "status")
	return err
}

func (f *floor) apply(ctx context.Context, t template, cr *unstructured.Unstructured) error {
	force := true
	_, err := f.client.Resource(t.resource).Namespace(cr.GetNamespace()).Patch(ctx, cr.GetName(), types.ApplyPatchType,
		t.of(cr), metav1.PatchOptions{FieldManager: floorManager, Force: &force})
	return err
}

func recordName(cr *unstructured.Unstructured, revision int64) string {
	return fmt.Sprintf("sh.helm.release.v1.%s.v%d", cr.GetName(), revision)
}

// payload returns data that does not compress, like a compressed release.
var payload = func() string {
	random, data := rand.NewChaCha8([32]byte{}), make([]byte, recordSize)
	_, _ = random.Read(data) // Read never fails
	return base64.StdEncoding.EncodeToString(data)
}()

func (f *floor) record(ctx context.Context, cr *unstructured.Unstructured, revision int64) error {
	record := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1",
		"metadata":   map[string]any{"name": recordName(cr, revision), "namespace": cr.GetNamespace()},
		"stringData": map[string]any{"release": payload},
	}}
	_, err := f.client.Resource(secrets).Namespace(cr.GetNamespace()).Create(ctx, record, metav1.CreateOptions{FieldManager: floorManager})
	return err
}

func (f *floor) uninstall(ctx context.Context, cr *unstructured.Unstructured, p *progress) error {
	background := metav1.DeletePropagationBackground
	options := metav1.DeleteOptions{PropagationPolicy: &background}
	for _, t := range f.templates {
		err := f.client.Resource(t.resource).Namespace(cr.GetNamespace()).Delete(ctx, cr.GetName(), options)
		if err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	for revision := int64(1); revision <= p.records; revision++ {
		if err := f.client.Resource(secrets).Namespace(cr.GetNamespace()).Delete(ctx, recordName(cr, revision), options); err != nil {
			return err
		}
	}
	return f.finalizers(ctx, cr)
}

func (f *floor) finalizers(ctx context.Context, cr *unstructured.Unstructured, list ...string) error {
	patch := []byte(`{"metadata":{"finalizers":null}}`)
	if len(list) > 0 {
		patch = fmt.Appendf(nil, `{"metadata":{"finalizers":[%q]}}`, list[0])
	}
	_, err := f.client.Resource(benches).Namespace(cr.GetNamespace()).Patch(ctx, cr.GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}
