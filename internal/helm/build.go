package helm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

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
	"github.com/chartwright/chartwright/internal/helm/engine"
)

// errKindUnread marks a temporary error: the API server did not answer which kinds it serves.
var errKindUnread = errors.New("the kind cannot be looked up")

// builder turns the manifests of one action into resource lists. Helm builds the same
// text up to three times, so lists are cached by their text. Helm also changes the
// lists, so the builder returns copies.
type builder struct {
	mapper    meta.RESTMapper
	clients   *boundClients
	namespace string
	// skipUnknown leaves out objects of kinds that the server no longer serves. An
	// uninstall has nothing to delete for them.
	skipUnknown bool
	// exact rejects objects in a version that the server does not serve, and exactHooks does
	// so for hooks. Other objects are those of a release record. They are built with the
	// mapping of a version that is served, see apply.Object.
	exact, exactHooks bool
	// ownKinds holds the kinds that the release itself defines and that the server does
	// not serve yet.
	ownKinds sets.Set[schema.GroupKind]
	// planned holds the kinds whose CRDs a plan creates.
	planned map[schema.GroupVersionKind]*meta.RESTMapping
	// ctx is the context of the action.
	ctx   context.Context
	built map[string]engine.ResourceList
	// permit is held from the end of a render until the manifest is parsed.
	permit parsePermit
}

// shared returns the objects of a manifest. The caller must not change them.
func (b *builder) shared(text string) (engine.ResourceList, error) {
	list, ok := b.built[text]
	if !ok {
		var err error
		if list, err = b.parse(text); err != nil {
			return nil, err
		}
		b.built[text] = list
	}
	return list, nil
}

// lenient returns a builder that leaves out objects of kinds that the server does not
// serve.
func (b *builder) lenient() *builder {
	return &builder{mapper: b.mapper, clients: b.clients, namespace: b.namespace, skipUnknown: true, ctx: b.ctx, built: map[string]engine.ResourceList{}}
}

// buildRendered builds a manifest that has just been rendered.
func (b *builder) buildRendered(text string) (engine.ResourceList, error) {
	b.exact, b.exactHooks = true, true
	defer func() { b.exact = false }()
	// A record may contain the same text.
	delete(b.built, text)
	return b.build(text)
}

// build returns copies of the objects of a manifest.
func (b *builder) build(text string) (engine.ResourceList, error) {
	list, err := b.shared(text)
	if err != nil {
		return nil, err
	}
	copied := make(engine.ResourceList, len(list))
	for i, info := range list {
		one := *info
		one.Object = info.Object.DeepCopyObject()
		copied[i] = &one
	}
	return copied, nil
}

func (b *builder) parse(text string) (engine.ResourceList, error) {
	// The limits exceed those of a render by a quarter, because an operator version with
	// other limits may have stored the manifest.
	limits := render.Defaults()
	if err := (boundedyaml.Limits{Bytes: limits.Output * 5 / 4, Values: limits.Tokens * 5 / 4}).Check(text); err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	if err := b.permit.acquire(b.ctx, text); err != nil {
		return nil, err
	}
	defer b.permit.release()
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	var list engine.ResourceList
	for {
		var raw runtime.RawExtension
		if err := decoder.Decode(&raw); errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, fmt.Errorf("the manifest is not YAML: %w", err)
		}
		var content map[string]any
		// Unlike encoding/json, this package decodes whole numbers as integers.
		if err := json.Unmarshal(raw.Raw, &content); len(raw.Raw) > 0 && err != nil {
			return nil, fmt.Errorf("the manifest contains a document that is not an object: %w", err)
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

// existing returns the objects of a stored manifest that may exist: those of kinds that the API
// server serves. A manifest that cannot be parsed has created none.
func (b *builder) existing(manifest string) (engine.ResourceList, error) {
	for _, builder := range []*builder{b, b.lenient()} {
		list, err := builder.build(manifest)
		if err == nil || b.ctx.Err() != nil || errors.Is(err, errKindUnread) {
			return list, err
		}
	}
	return nil, nil
}

// document returns the objects of one document. A document with the hook annotation is
// a hook, or a list of hooks. Helm ignores the annotations of list items, and so does
// this function.
func (b *builder) document(document *unstructured.Unstructured) (engine.ResourceList, error) {
	stringifyMetadata(document)
	_, hook := document.GetAnnotations()[engine.HookAnnotation]
	objects := []unstructured.Unstructured{*document}
	if document.IsList() {
		items, err := document.ToList()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", document.GetKind(), err)
		}
		objects = items.Items
	}
	var list engine.ResourceList
	for i := range objects {
		stringifyMetadata(&objects[i])
		info, err := b.info(&objects[i], b.exact || hook && b.exactHooks)
		if err != nil {
			return nil, err
		}
		if info == nil {
			continue
		}
		if hook {
			info.Source = engine.HookSource
		}
		list = append(list, info)
	}
	return list, nil
}

// info returns the Info of an object, or nil if the object is left out.
func (b *builder) info(object *unstructured.Unstructured, exact bool) (*resource.Info, error) {
	gvk := object.GroupVersionKind()
	if gvk.Kind == "" || gvk.Version == "" {
		return nil, fmt.Errorf("an object named %q has no apiVersion or kind", object.GetName())
	}
	if object.GetName() == "" {
		return nil, fmt.Errorf("a %s has no metadata.name", gvk.Kind)
	}
	mapping, err := b.mapping(gvk)
	if meta.IsNoMatchError(err) && !exact {
		if served, servedErr := b.mapper.RESTMapping(gvk.GroupKind(), ""); !meta.IsNoMatchError(servedErr) {
			mapping, err = served, servedErr
		}
	}
	if meta.IsNoMatchError(err) && b.skipUnknown {
		return nil, nil
	}
	if err != nil && !meta.IsNoMatchError(err) {
		err = fmt.Errorf("%w: %w", errKindUnread, err)
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
	client, err := b.clients.forVersion(mapping.GroupVersionKind.GroupVersion())
	if err != nil {
		return nil, err
	}
	return &resource.Info{Client: client, Mapping: mapping, Namespace: object.GetNamespace(), Name: object.GetName(), Object: object}, nil
}

// boundClients creates the REST clients for Helm's ownership check. Helm passes a
// context that never ends, so the transport replaces it with the context of the action.
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

// boundTransport sends requests with the context of the action.
type boundTransport struct {
	ctx  context.Context
	next http.RoundTripper
}

// RoundTrip sends the request with the context of the action.
func (t boundTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	return t.next.RoundTrip(request.WithContext(t.ctx))
}

// largeManifest is the number of lines, keys and items above which manifests are parsed
// one at a time in the whole process. A YAML parser takes about 500 bytes for each
// item, many times the length of the text.
const largeManifest = 20_000

// largeManifests limits the parsing of large manifests to one action at a time.
var largeManifests = make(chan struct{}, 1)

// parsePermit is the permission of one action to parse large manifests.
type parsePermit struct{ held bool }

// acquire acquires the permission if the texts together are large. While an action holds
// the permission, it waits for nothing else.
func (t *parsePermit) acquire(ctx context.Context, texts ...string) error {
	tokens := 0
	for _, text := range texts {
		tokens += boundedyaml.Tokens(text)
	}
	if t.held || tokens <= largeManifest {
		return nil
	}
	select {
	case largeManifests <- struct{}{}:
		t.held = true
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// release releases the permission.
func (t *parsePermit) release() {
	if t.held {
		t.held = false
		<-largeManifests
	}
}

// servedWithin limits the wait until the API server serves a kind whose CRD was just
// created. That usually takes less than a second.
const servedWithin = 10 * time.Second

// definedIn returns the kinds that the CustomResourceDefinitions among objects define.
func definedIn(objects engine.ResourceList) sets.Set[schema.GroupKind] {
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

// mapping returns the REST mapping of a kind. It waits for kinds that the release
// itself defines, because their hooks run soon after their CRDs are created.
func (b *builder) mapping(gvk schema.GroupVersionKind) (*meta.RESTMapping, error) {
	mapping, err := b.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if planned := b.planned[gvk]; planned != nil && meta.IsNoMatchError(err) {
		return planned, nil
	}
	if !meta.IsNoMatchError(err) || !b.ownKinds.Has(gvk.GroupKind()) {
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
