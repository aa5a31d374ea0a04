package kindstatus

import "sync"

// Input is what expressions speak of.
type Input struct {
	Release Release
	// Values returns the values that the release has: the chart's defaults with
	// what was given over them. It is called at most once, and only where an
	// expression speaks of values. Nil says that they cannot be had for now.
	Values    func() map[string]any
	Resources []Resource
	// Observed holds the objects of each entry of observe. Nobody changes them.
	Observed map[string][]any
	// Unobserved tells why there are no objects of an entry.
	Unobserved map[string]string
	// Redact takes out of a text what nobody may read; nil takes out nothing.
	Redact func(string) string
}

// Release is the newest revision of the release.
type Release struct {
	Name      string
	Namespace string
	// Revision is 0 where there is none yet.
	Revision int64
	// Status is Helm's word: deployed, failed, …
	Status string
	// Chart is "<name>-<version>".
	Chart        string
	ChartVersion string
	AppVersion   string
}

// Resource is one object of the release.
type Resource struct {
	// Group is that of the kind, empty for Kubernetes' core.
	Group     string
	Kind      string
	Namespace string
	Name      string
	Ready     bool
	// Reason is a word and Message a sentence on what it waits for.
	Reason  string
	Message string
}

// Expressions see plain maps, of the types in structs.

func (r Release) native() map[string]any {
	return map[string]any{
		"name": r.Name, "namespace": r.Namespace, "revision": r.Revision, "status": r.Status,
		"chart": r.Chart, "chartVersion": r.ChartVersion, "appVersion": r.AppVersion,
	}
}

func (r Resource) native() map[string]any {
	return map[string]any{
		"group": r.Group, "kind": r.Kind, "namespace": r.Namespace, "name": r.Name,
		"ready": r.Ready, "reason": r.Reason, "message": r.Message,
	}
}

// variables are what an evaluation finds under the names of the environment.
func (in Input) variables() map[string]any {
	resources := make([]any, len(in.Resources))
	for i, r := range in.Resources {
		resources[i] = r.native()
	}
	observed := make(map[string]any, len(in.Observed))
	for name, objects := range in.Observed {
		observed[name] = objects
	}
	found := map[string]any{varRelease: in.Release.native(), varResources: resources, varObserved: observed}
	if in.Values != nil {
		// CEL calls it when an expression asks for it.
		found[varValues] = sync.OnceValue(func() any { return in.Values() })
	}
	return found
}
