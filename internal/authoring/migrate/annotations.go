package migrate

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// theirDomain is what the annotations of the operator-sdk's users begin with.
const theirDomain = "helm.sdk.operatorframework.io/"

// theirAnnotations are those that mean something, with the type of their
// values.
var theirAnnotations = map[string]func(string) error{
	"upgrade-force": isBool, "rollback-force": isBool, "uninstall-wait": isBool,
	"reconcile-period":      isDuration,
	"install-disable-hooks": isBool, "upgrade-disable-hooks": isBool, "uninstall-disable-hooks": isBool,
	"install-description": isText, "upgrade-description": isText, "uninstall-description": isText,
}

func isBool(text string) error {
	_, err := strconv.ParseBool(text)
	return err
}

func isDuration(text string) error {
	_, err := time.ParseDuration(text)
	return err
}

func isText(string) error { return nil }

// annotations tells of annotations of the operator-sdk's on a custom resource.
func (f *finder) annotations(cr *unstructured.Unstructured) {
	annotations := cr.GetAnnotations()
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		name, theirs := strings.CutPrefix(key, theirDomain)
		if !theirs {
			continue
		}
		check, known := theirAnnotations[name]
		of := []string{resourceName(cr)}
		if !known {
			f.addf(Changes, "", "the annotation %s has no effect", key).Resources = of
			continue
		}
		if err := check(annotations[key]); err != nil {
			found := f.addf(Changes, "", "the annotation %s has the value %q, which cannot be understood: it stops nothing, and the condition InvalidAnnotations says so", key, annotations[key])
			found.Do, found.Resources = "mend the value, or remove the annotation", of
			continue
		}
		f.addf(Works, "", "the annotation %s", key).Resources = of
	}
}
