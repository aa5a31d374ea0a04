package helm

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
)

// remake deletes an object that was refused for what it is now, and makes it
// again, whole. One that would be refused anyway stays.
func (k *kubeClient) remake(o apply.Object, options apply.Options, refusal error) (*metav1.PartialObjectMetadata, error) {
	unchangeable, err := k.objects.IsImmutable(k.ctx, o, refusal)
	if err != nil {
		return nil, err
	}
	if !unchangeable {
		return nil, refusal
	}
	what := apply.Describe(o.Unstructured)
	k.notifier.Warn(api.EventForced, fmt.Sprintf("%s could not be changed and is deleted and made again", what))
	made, err := k.objects.Replace(k.ctx, o, k.owner, options)
	if err != nil || len(ignored(k.ignore, o.Unstructured)) == 0 {
		return made, err
	}
	if o, err = k.leaveToOthers(o); err != nil {
		return nil, err
	}
	return k.objects.Apply(k.ctx, o, options)
}
