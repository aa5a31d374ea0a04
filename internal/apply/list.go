package apply

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
)

// pageSize limits the objects in one response.
const pageSize = 1000

// EachListed lists the metadata of objects page by page, and calls visit with each.
func EachListed(ctx context.Context, from metadata.ResourceInterface, options metav1.ListOptions, visit func(*metav1.PartialObjectMetadata)) error {
	options.Limit = pageSize
	for {
		page, err := from.List(ctx, options)
		if err != nil {
			return err
		}
		for i := range page.Items {
			visit(&page.Items[i])
		}
		if options.Continue = page.Continue; options.Continue == "" {
			return nil
		}
	}
}
