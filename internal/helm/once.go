package helm

import (
	"errors"
	"fmt"

	helmkube "helm.sh/helm/v3/pkg/kube"

	"github.com/chartwright/chartwright/internal/apply"
)

// checkOnce refuses objects that are rendered more than once, as an install of
// Helm's does half-way: it makes each, and the second is there already. Applied
// over each other they would change with every look.
func checkOnce(objects helmkube.ResourceList) error {
	var errs []error
	times := map[apply.Key]int{}
	for _, info := range objects {
		key := apply.KeyOf(object(info))
		times[key]++
		if times[key] == 2 {
			errs = append(errs, fmt.Errorf("%s is rendered twice: give one of the two another name, or leave it out", key))
		}
	}
	return errors.Join(errs...)
}
