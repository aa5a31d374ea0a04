package customresource

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/client-go/rest"
)

// connect returns a client for the resource of a mapping that decodes custom
// resources by a Decoder.
func connect(config *rest.Config, httpClient *http.Client, mapping *meta.RESTMapping, decoder Decoder) (rest.Interface, error) {
	config = rest.CopyConfig(config)
	config.GroupVersion = new(mapping.GroupVersionKind.GroupVersion())
	config.APIPath = "/apis"
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	config.NegotiatedSerializer = negotiated{decoder}
	client, err := rest.RESTClientForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("set up the client of %s: %w", mapping.Resource, err)
	}
	return client, nil
}

// metaTypes holds the types that an API server sends beside custom resources.
var metaTypes = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	return scheme
}()

// negotiated offers JSON alone.
type negotiated struct{ decoder Decoder }

// SupportedMediaTypes returns JSON.
func (n negotiated) SupportedMediaTypes() []runtime.SerializerInfo {
	known := jsonserializer.NewSerializerWithOptions(jsonserializer.DefaultMetaFactory, metaTypes, metaTypes, jsonserializer.SerializerOptions{})
	return []runtime.SerializerInfo{{
		MediaType: runtime.ContentTypeJSON, MediaTypeType: "application", MediaTypeSubType: "json", EncodesAsText: true,
		Serializer:       serializer{Serializer: known, decoder: n.decoder},
		StreamSerializer: &runtime.StreamSerializerInfo{EncodesAsText: true, Serializer: known, Framer: jsonserializer.Framer},
	}}
}

// EncoderForVersion returns the encoder.
func (negotiated) EncoderForVersion(encoder runtime.Encoder, _ runtime.GroupVersioner) runtime.Encoder {
	return encoder
}

// DecoderToVersion returns the decoder.
func (negotiated) DecoderToVersion(decoder runtime.Decoder, _ runtime.GroupVersioner) runtime.Decoder {
	return decoder
}

// serializer decodes custom resources by a Decoder, and the errors of the API
// server by the serializer that it embeds.
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
	switch start, err := decoder.Token(); {
	case err != nil:
		return nil, fmt.Errorf("decode a list of custom resources: %w", err)
	case start != json.Delim('{'):
		return nil, fmt.Errorf("decode a list of custom resources: got %v, want an object", start)
	}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return nil, fmt.Errorf("decode a list of custom resources: %w", err)
		}
		if key == "items" {
			if err := d.decodeItems(decoder, list); err != nil {
				return nil, fmt.Errorf("decode a list of custom resources: %w", err)
			}
			continue
		}
		var value any
		if err := decoder.Decode(&value); err != nil {
			return nil, fmt.Errorf("decode a list of custom resources: %w", err)
		}
		if name, is := key.(string); is {
			list.Object[name] = value
		}
	}
	if _, err := decoder.Token(); err != nil {
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
