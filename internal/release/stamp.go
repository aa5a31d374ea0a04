package release

import (
	"encoding/json"
	"maps"
	"strconv"
	"strings"

	helmrelease "helm.sh/helm/v3/pkg/release"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
)

// stamp is what one action leaves on the record that it creates: whose release
// it is and what it was rendered from.
type stamp struct {
	release string
	owner   apply.Owner
	Action  string
	Digests Digests
	marks   Marks
	// redact keeps secrets out of what is not stored in the record itself.
	Redact func(string) string
}

// Digests tell what a revision was rendered from. Each fits into a label.
type Digests struct {
	// Input covers everything: two equal ones need no upgrade between them.
	Input string
	// Chart covers the chart's files.
	Chart string
	// Values covers the values given to the chart.
	Values string
}

func NewStamp(rls string, owner apply.Owner, digests Digests, marks Marks) stamp {
	return stamp{release: rls, owner: owner, Action: string(uuid.NewUUID()), Digests: digests, marks: marks}
}

// mark puts our labels on a new revision, in place of any that Helm copied
// from an older one.
func (s stamp) Mark(rls *helmrelease.Release) {
	labels := maps.Clone(rls.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.DeleteFunc(labels, func(key, _ string) bool { return strings.HasPrefix(key, api.Domain+"/") })
	maps.Copy(labels, map[string]string{
		api.LabelOwnerUID:     string(s.owner.UID),
		api.LabelOperator:     s.owner.Operator,
		api.LabelAction:       s.Action,
		api.LabelRevision:     strconv.Itoa(rls.Version),
		api.LabelInputDigest:  s.Digests.Input,
		api.LabelChartDigest:  s.Digests.Chart,
		api.LabelValuesDigest: s.Digests.Values,
	})
	for key, value := range s.marks.Labels() {
		if value != "" {
			labels[key] = value
		}
	}
	rls.Labels = labels
}

// annotate puts on the Secret what the status reports and no label can hold.
func (s stamp) Annotate(secret *corev1.Secret, rls *helmrelease.Release, inventory Inventory) {
	description := Description{Description: Truncate(s.Redact(rls.Info.Description), MaxDescription), NoHooks: len(rls.Hooks) == 0}
	if rls.Chart != nil && rls.Chart.Metadata != nil {
		description.Chart = rls.Chart.Metadata.Name
		description.ChartVersion = rls.Chart.Metadata.Version
		description.AppVersion = rls.Chart.Metadata.AppVersion
	}
	if !rls.Info.LastDeployed.IsZero() {
		description.Deployed = metav1.NewTime(rls.Info.LastDeployed.Time)
	}
	// A struct of strings and a time always encodes.
	text, _ := json.Marshal(description)
	secret.Annotations = map[string]string{
		api.AnnotationOwner: s.owner.String(),
		AnnotationRelease:   string(text),
	}
	if inventory.Digest != "" {
		text, _ := json.Marshal(inventory)
		secret.Annotations[AnnotationInventory] = string(text)
	}
}

// maxDescription bounds what of a revision's description is kept in memory and
// shown in the status; the record holds the whole.
const MaxDescription = 256

func Truncate(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit-len("…")], "") + "…"
}
