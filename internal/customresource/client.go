package customresource

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Client reads and patches custom resources, and decodes the responses into packed ones.
type Client struct {
	config     *rest.Config
	httpClient *http.Client
	mapper     meta.RESTMapper

	mu       sync.Mutex
	decoders map[schema.GroupVersionKind]Decoder
	clients  map[schema.GroupVersionKind]kindClient
}

// kindClient is the client for custom resources of one kind.
type kindClient struct {
	rest    rest.Interface
	mapping *meta.RESTMapping
	decoder Decoder
}

// NewClient returns a client for the kinds of the decoders.
func NewClient(config *rest.Config, httpClient *http.Client, mapper meta.RESTMapper, decoders map[schema.GroupVersionKind]Decoder) *Client {
	decoders = maps.Clone(decoders)
	if decoders == nil {
		decoders = map[schema.GroupVersionKind]Decoder{}
	}
	return &Client{config: config, httpClient: httpClient, mapper: mapper, decoders: decoders, clients: map[schema.GroupVersionKind]kindClient{}}
}

// SetDecoder sets the decoder of a kind.
func (c *Client) SetDecoder(gvk schema.GroupVersionKind, decoder Decoder) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.decoders[gvk] = decoder
	delete(c.clients, gvk)
}

// Complete returns a custom resource with all its content, as it is now in the API server. It
// lists, because the operator's role permits no get.
func (c *Client) Complete(ctx context.Context, cr *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	from, err := c.client(cr.GroupVersionKind())
	if err != nil {
		return nil, err
	}
	resource := from.mapping.Resource
	data, err := from.rest.Get().NamespaceIfScoped(cr.GetNamespace(), cr.GetNamespace() != "").Resource(resource.Resource).
		Param("fieldSelector", fields.OneTermEqualSelector("metadata.name", cr.GetName()).String()).Do(ctx).Raw()
	if err != nil {
		return nil, err
	}
	var list struct{ Items []json.RawMessage }
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("decode a list of custom resources: %w", err)
	}
	if len(list.Items) != 1 {
		return nil, apierrors.NewNotFound(resource.GroupResource(), cr.GetName())
	}
	return from.decoder.decode(list.Items[0], maxMetadataBytes)
}

// Patch patches a custom resource and replaces its content by the response.
func (c *Client) Patch(ctx context.Context, cr *unstructured.Unstructured, patch client.Patch) error {
	return c.patch(ctx, cr, patch)
}

// PatchStatus patches the status of a custom resource and replaces its content by the
// response.
func (c *Client) PatchStatus(ctx context.Context, cr *unstructured.Unstructured, patch client.Patch) error {
	return c.patch(ctx, cr, patch, fieldStatus)
}

func (c *Client) patch(ctx context.Context, cr *unstructured.Unstructured, patch client.Patch, subresource ...string) error {
	data, err := patch.Data(cr)
	if err != nil {
		return fmt.Errorf("compute the patch: %w", err)
	}
	to, err := c.client(cr.GroupVersionKind())
	if err != nil {
		return err
	}
	return to.rest.Patch(patch.Type()).NamespaceIfScoped(cr.GetNamespace(), cr.GetNamespace() != "").
		Resource(to.mapping.Resource.Resource).Name(cr.GetName()).SubResource(subresource...).
		Body(data).Do(ctx).Into(cr)
}

func (c *Client) client(gvk schema.GroupVersionKind) (kindClient, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if known, is := c.clients[gvk]; is {
		return known, nil
	}
	mapping, err := c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return kindClient{}, fmt.Errorf("find the resource of %s: %w", gvk, err)
	}
	to, err := connect(c.config, c.httpClient, mapping, c.decoders[gvk])
	if err != nil {
		return kindClient{}, err
	}
	c.clients[gvk] = kindClient{rest: to, mapping: mapping, decoder: c.decoders[gvk]}
	return c.clients[gvk], nil
}

// Selection selects the custom resources of a ListWatch.
type Selection struct {
	Mapping *meta.RESTMapping
	// Namespace is empty for all namespaces.
	Namespace string
	// Labels selects by labels; nil selects all.
	Labels labels.Selector
}

// ListWatch returns a ListerWatcher for packed custom resources. It decodes them one at a
// time, and never holds the text of a whole list.
func (d Decoder) ListWatch(config *rest.Config, httpClient *http.Client, of Selection) (toolscache.ListerWatcher, error) {
	client, err := connect(config, httpClient, of.Mapping, d)
	if err != nil {
		return nil, err
	}
	request := func(options metav1.ListOptions) *rest.Request {
		if of.Labels != nil {
			options.LabelSelector = of.Labels.String()
		}
		return client.Get().NamespaceIfScoped(of.Namespace, of.Namespace != "").Resource(of.Mapping.Resource.Resource).
			VersionedParams(&options, metav1.ParameterCodec)
	}
	return &toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			body, err := request(options).Stream(ctx)
			if err != nil {
				return nil, err
			}
			defer func() { _ = body.Close() }()
			return d.decodeList(body)
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			options.Watch, options.AllowWatchBookmarks = true, true
			return request(options).Watch(ctx)
		},
	}, nil
}

// connect returns a client for a resource that decodes custom resources with a Decoder.
func connect(config *rest.Config, httpClient *http.Client, mapping *meta.RESTMapping, decoder Decoder) (rest.Interface, error) {
	config = rest.CopyConfig(config)
	config.GroupVersion = new(mapping.GroupVersionKind.GroupVersion())
	config.APIPath = "/apis"
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	known := jsonserializer.NewSerializerWithOptions(jsonserializer.DefaultMetaFactory, metaTypes, metaTypes, jsonserializer.SerializerOptions{})
	config.NegotiatedSerializer = runtime.NewSimpleNegotiatedSerializer(runtime.SerializerInfo{
		MediaType: runtime.ContentTypeJSON, MediaTypeType: "application", MediaTypeSubType: "json", EncodesAsText: true,
		Serializer:       serializer{Serializer: known, decoder: decoder},
		StreamSerializer: &runtime.StreamSerializerInfo{EncodesAsText: true, Serializer: known, Framer: jsonserializer.Framer},
	})
	client, err := rest.RESTClientForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("set up the client of %s: %w", mapping.Resource, err)
	}
	return client, nil
}

// metaTypes holds the other types that an API server sends.
var metaTypes = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return scheme
}()

// serializer decodes custom resources with a Decoder, and the errors of the API server with
// the embedded serializer.
type serializer struct {
	runtime.Serializer
	decoder Decoder
}

// Decode returns a packed custom resource or a Status.
func (s serializer) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	var is metav1.TypeMeta
	if err := json.Unmarshal(data, &is); err != nil {
		return nil, nil, fmt.Errorf("decode the kind of an object: %w", err)
	}
	if gvk := is.GroupVersionKind(); gvk == metav1.Unversioned.WithKind("Status") || gvk.Empty() {
		return s.Serializer.Decode(data, defaults, into)
	}
	cr, err := s.decoder.Decode(data)
	if err != nil {
		return nil, nil, err
	}
	if given, is := into.(*unstructured.Unstructured); is {
		given.Object = cr.Object
		cr = given
	}
	return cr, new(cr.GroupVersionKind()), nil
}

// decodeList decodes a list of custom resources, one at a time.
func (d Decoder) decodeList(from io.Reader) (*unstructured.UnstructuredList, error) {
	list := &unstructured.UnstructuredList{Object: map[string]any{}}
	decoder := json.NewDecoder(from)
	err := eachField(decoder, func(name string) error {
		if name == "items" {
			return d.decodeItems(decoder, list)
		}
		var value any
		err := decoder.Decode(&value)
		list.Object[name] = value
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("decode a list of custom resources: %w", err)
	}
	return list, nil
}

func (d Decoder) decodeItems(decoder *json.Decoder, list *unstructured.UnstructuredList) error {
	switch start, err := decoder.Token(); {
	case err != nil:
		return err
	case start == nil:
		// null is an empty list.
		return nil
	case start != json.Delim('['):
		return fmt.Errorf("items: got %v, want a list", start)
	}
	var raw json.RawMessage
	for decoder.More() {
		if err := decoder.Decode(&raw); err != nil {
			return err
		}
		cr, err := d.Decode(raw)
		if err != nil {
			return err
		}
		list.Items = append(list.Items, *cr)
	}
	_, err := decoder.Token()
	return err
}
