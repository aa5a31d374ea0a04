package helm

import "helm.sh/helm/v3/pkg/strvals"

// Set puts a value at a path, both written as in helm's --set, into values.
func Set(values map[string]any, path, value string) error {
	return strvals.ParseInto(path+"="+value, values)
}
