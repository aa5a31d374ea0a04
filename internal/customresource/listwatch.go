package customresource

import (
	"context"
	"net/http"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
)

// Selection is which custom resources a ListWatch lists.
type Selection struct {
	Mapping *meta.RESTMapping
	// Namespace is empty for all namespaces.
	Namespace string
	// Labels selects by labels; nil selects all.
	Labels labels.Selector
}

// ListWatch returns how an informer lists and watches packed custom resources.
// It decodes each as it arrives, and never holds the text of a whole list.
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
