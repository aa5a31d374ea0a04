package helm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	helmkube "helm.sh/helm/v3/pkg/kube"
	helmrelease "helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/rest"

	"github.com/chartwright/chartwright/internal/chart/boundedyaml"
	"github.com/chartwright/chartwright/internal/chart/render"
)

// builder turns manifests into resource lists, for one action. Helm builds the
// same text up to three times, so lists are remembered by their text; Helm also
// changes what it gets, so copies are handed out.
type builder struct {
	mapper    meta.RESTMapper
	clients   *boundClients
	namespace string
	// skipUnknown leaves out objects whose kind the server no longer knows,
	// which on an uninstall are gone by definition.
	skipUnknown bool
	// awaited are kinds that the release itself defines and that the server does
	// not know yet.
	awaited sets.Set[schema.GroupKind]
	// ctx is the action's.
	ctx   context.Context
	built map[string]helmkube.ResourceList
	// turn is held from the end of a render until its manifest is parsed.
	turn turn
}

func (b *builder) build(text string) (helmkube.ResourceList, error) {
	list, ok := b.built[text]
	if !ok {
		var err error
		if list, err = b.parse(text); err != nil {
			return nil, err
		}
		b.built[text] = list
	}
	copied := make(helmkube.ResourceList, len(list))
	for i, info := range list {
		one := *info
		one.Object = info.Object.DeepCopyObject()
		copied[i] = &one
	}
	return copied, nil
}

func (b *builder) parse(text string) (helmkube.ResourceList, error) {
	// The limits exceed those of a render by a quarter, because a version of the operator
	// with other limits may have stored the manifest.
	limits := render.Defaults()
	if err := (boundedyaml.Limits{Bytes: limits.Output * 5 / 4, Values: limits.Tokens * 5 / 4}).Check(text); err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	if err := b.turn.await(b.ctx, text); err != nil {
		return nil, err
	}
	defer b.turn.done()
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	var list helmkube.ResourceList
	for {
		var raw runtime.RawExtension
		if err := decoder.Decode(&raw); errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, fmt.Errorf("the manifest is not YAML: %w", err)
		}
		var content map[string]any
		// This package, unlike encoding/json, leaves whole numbers whole.
		if err := json.Unmarshal(raw.Raw, &content); len(raw.Raw) > 0 && err != nil {
			return nil, fmt.Errorf("the manifest holds a document that is no object: %w", err)
		}
		if len(content) == 0 {
			continue
		}
		infos, err := b.document(&unstructured.Unstructured{Object: content})
		if err != nil {
			return nil, err
		}
		list = append(list, infos...)
	}
}

// document returns the objects of one document, which is a hook, or a list of
// hooks, if it is annotated as one: what the items of a list say counts as
// little as it does for Helm.
func (b *builder) document(document *unstructured.Unstructured) (helmkube.ResourceList, error) {
	stringifyMetadata(document)
	_, hook := document.GetAnnotations()[helmrelease.HookAnnotation]
	objects := []unstructured.Unstructured{*document}
	if document.IsList() {
		items, err := document.ToList()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", document.GetKind(), err)
		}
		objects = items.Items
	}
	var list helmkube.ResourceList
	for i := range objects {
		stringifyMetadata(&objects[i])
		info, err := b.info(&objects[i])
		if err != nil {
			return nil, err
		}
		if info == nil {
			continue
		}
		if hook {
			info.Source = sourceHook
		}
		list = append(list, info)
	}
	return list, nil
}

// info returns the Info of an object, nil if the object is to be left out.
func (b *builder) info(object *unstructured.Unstructured) (*resource.Info, error) {
	gvk := object.GroupVersionKind()
	if gvk.Kind == "" || gvk.Version == "" {
		return nil, fmt.Errorf("an object named %q has no apiVersion or kind", object.GetName())
	}
	if object.GetName() == "" {
		return nil, fmt.Errorf("a %s has no metadata.name", gvk.Kind)
	}
	mapping, err := b.mapping(gvk)
	if meta.IsNoMatchError(err) && b.skipUnknown {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", gvk.Kind, object.GetName(), err)
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		if object.GetNamespace() == "" {
			object.SetNamespace(b.namespace)
		}
	} else {
		object.SetNamespace("")
	}
	client, err := b.clients.forVersion(gvk.GroupVersion())
	if err != nil {
		return nil, err
	}
	return &resource.Info{Client: client, Mapping: mapping, Namespace: object.GetNamespace(), Name: object.GetName(), Object: object}, nil
}

// boundClients makes the REST clients that Helm's ownership check uses. Helm
// calls them with a context of its own that never ends, so the transport puts
// the action's context in its place.
type boundClients struct {
	config *rest.Config
	http   *http.Client
	made   map[schema.GroupVersion]resource.RESTClient
}

func newBoundClients(ctx context.Context, config *rest.Config, shared *http.Client) *boundClients {
	bound := *shared
	bound.Transport = boundTransport{ctx: ctx, next: shared.Transport}
	return &boundClients{config: config, http: &bound, made: map[schema.GroupVersion]resource.RESTClient{}}
}

func (b *boundClients) forVersion(gv schema.GroupVersion) (resource.RESTClient, error) {
	if made := b.made[gv]; made != nil {
		return made, nil
	}
	config := rest.CopyConfig(b.config)
	config.ContentConfig = resource.UnstructuredPlusDefaultContentConfig()
	config.GroupVersion = &gv
	config.APIPath = "/apis"
	if gv.Group == "" {
		config.APIPath = "/api"
	}
	client, err := rest.RESTClientForConfigAndClient(config, b.http)
	if err != nil {
		return nil, err
	}
	b.made[gv] = client
	return client, nil
}

// boundTransport ends requests with the action's context.
type boundTransport struct {
	ctx  context.Context
	next http.RoundTripper
}

// RoundTrip sends the request under the action's context.
func (t boundTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	return t.next.RoundTrip(request.WithContext(t.ctx))
}

// largeManifest is the number of lines, keys and items above which manifests are
// parsed one at a time, whatever action they belong to. A YAML parser takes about
// 500 bytes for each item, which is many times the length of the text.
const largeManifest = 20_000

// parsesLarge holds the action that may parse a large manifest.
var parsesLarge = make(chan struct{}, 1)

// turn is the turn of one action to parse large manifests.
type turn struct{ held bool }

// await takes the turn if the texts together are large. An action never waits for
// anything else while it has the turn.
func (t *turn) await(ctx context.Context, texts ...string) error {
	tokens := 0
	for _, text := range texts {
		tokens += boundedyaml.Tokens(text)
	}
	if t.held || tokens <= largeManifest {
		return nil
	}
	select {
	case parsesLarge <- struct{}{}:
		t.held = true
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// done gives the turn to the next action.
func (t *turn) done() {
	if t.held {
		t.held = false
		<-parsesLarge
	}
}

// servedWithin is how long the API server may take to serve a kind whose
// definition has just been created. It mostly takes less than a second.
const servedWithin = 10 * time.Second

// definedIn returns the kinds that CustomResourceDefinitions among objects
// define.
func definedIn(objects helmkube.ResourceList) sets.Set[schema.GroupKind] {
	kinds := sets.Set[schema.GroupKind]{}
	for _, info := range objects {
		definition := object(info).Unstructured
		if definition.GetKind() != "CustomResourceDefinition" {
			continue
		}
		group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
		kinds.Insert(schema.GroupKind{Group: group, Kind: kind})
	}
	return kinds
}

// mapping returns the resource of a kind. It waits for kinds that the release
// itself defines: their hooks run soon after the definitions are created.
func (b *builder) mapping(gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	mapping, err := b.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if !meta.IsNoMatchError(err) || !b.awaited.Has(gvk.GroupKind()) {
		return mapping, err
	}
	waited := wait.PollUntilContextTimeout(b.ctx, servedWithin/100, servedWithin, true, func(context.Context) (bool, error) {
		mapping, err = b.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		return !meta.IsNoMatchError(err), nil
	})
	if waited != nil && b.ctx.Err() != nil {
		return nil, waited
	}
	return mapping, err
}
