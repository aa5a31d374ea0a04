package migrate

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/catalog"
	"github.com/chartwright/chartwright/internal/chart/values"
	"github.com/chartwright/chartwright/internal/helm"
)

// takenOver tells how a release is taken over: as it is, or by one revision
// more, or not at all. Inherited is one that the operator-sdk has made for this
// very custom resource.
func takenOver(kind catalog.Kind, cr *unstructured.Unstructured, stored *helm.Stored, inherited bool, given map[string]any) []Finding {
	f := finder{topic: topicOf(kind)}
	of := []string{resourceName(cr)}
	switch {
	case stored.Chart != kind.Chart.Name() && !inherited:
		found := f.addf(Breaks, "", "there is a release of its name, which is of the chart %s and not of %s, and of no custom resource: a second one would be made, called <name>-%s", stored.Chart, kind.Chart.Name(), strings.ToLower(kind.Kind))
		found.Do, found.Resources = "rename the chart as it was, or uninstall that release first", of
		return f.findings
	case strings.HasPrefix(stored.Status, "pending-"):
		found := f.addf(ToDo, "", "an action runs on its release, or was cut short (revision %d is %s)", stored.Revision, stored.Status)
		found.Do, found.Resources = "let the old operator end it; if nothing runs, it is recorded as failed after the entry's timeout, and done again", of
		return f.findings
	case stored.Status == api.StatusUninstalling:
		found := f.addf(ToDo, "", "its release is being uninstalled")
		found.Do, found.Resources = "let the old operator end that before it stops", of
		return f.findings
	}
	var why []string
	if stored.Status != api.StatusDeployed {
		why = append(why, "the newest revision is "+stored.Status)
	}
	if stored.Chart != kind.Chart.Name() {
		why = append(why, fmt.Sprintf("the chart is %s, and the release's %s", kind.Chart.Name(), stored.Chart))
	}
	if stored.ChartVersion != kind.Chart.Version() {
		why = append(why, fmt.Sprintf("the chart's version is %s, and the release's %s", kind.Chart.Version(), stored.ChartVersion))
	}
	if before := values.Retype(stored.Values, kind.Overrides); values.Digest(before) != values.Digest(given) {
		why = append(why, "these values are not those of the release: "+strings.Join(differences(before, given, ""), ", "))
	}
	if len(why) > 0 {
		f.addf(Changes, "", "its release gets one more revision when it is taken over: %s", strings.Join(why, "; ")).Resources = of
		return f.findings
	}
	f.addf(Works, "", "its release is taken over as it is, with no new revision").Resources = of
	return f.findings
}
