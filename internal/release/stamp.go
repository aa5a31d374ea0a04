package release

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/helm/engine"
)

// WithFinished adds the finished Jobs to the inventory of a record, and computes the
// digest without these Jobs.
func WithFinished(stored Inventory, states []apply.State, outcome func(apply.State) string) Inventory {
	stored.Finished = map[string]string{}
	var rest []apply.State
	for _, state := range states {
		if state.Kind == "Job" {
			if how := outcome(state); how != "" {
				stored.Finished[JobName(state.Key)] = how
				continue
			}
		}
		rest = append(rest, state)
	}
	stored.Digest = apply.Digest(rest)
	return stored
}

// JobName returns the name of a Job in Inventory.Finished.
func JobName(key apply.Key) string { return key.Namespace + "/" + key.Name }

// FinishedJobs returns the outcomes of the finished Jobs of a record.
func FinishedJobs(stored Inventory) map[apply.Key]string {
	if len(stored.Finished) == 0 {
		return nil
	}
	jobs := make(map[apply.Key]string, len(stored.Finished))
	for job, outcome := range stored.Finished {
		namespace, name, _ := strings.Cut(job, "/")
		jobs[apply.Key{Group: "batch", Kind: "Job", Namespace: namespace, Name: name}] = outcome
	}
	return jobs
}

// An object outside of the release's namespace belongs to the release only if the
// release contains it; see package inventory. The record lists these objects in an
// annotation, so that a new process need not decode every record. The annotation needs
// no signature: it only selects among objects with the owner's labels, and setting
// those labels requires write access to the objects.

// maxOutsideText limits the list in bytes.
const maxOutsideText = 8 << 10

// Outside returns the objects outside of a namespace for Inventory.Outside, or nothing
// if there are too many.
func Outside(states []apply.State, namespace string) []string {
	var names []string
	size := 0
	for i := range states {
		if key := states[i].Key; key.Namespace != namespace {
			name := key.GroupKind().String() + "/" + key.Namespace + "/" + key.Name
			size += len(name)
			names = append(names, name)
		}
	}
	if len(names) > MaxOutside || size > maxOutsideText {
		return nil
	}
	slices.Sort(names)
	return names
}

// OutsideObjects returns the keys of the objects in Inventory.Outside.
func OutsideObjects(stored Inventory) []apply.Key {
	var keys []apply.Key
	for _, text := range stored.Outside {
		kind, place, _ := strings.Cut(text, "/")
		namespace, name, _ := strings.Cut(place, "/")
		if gk := schema.ParseGroupKind(kind); gk.Kind != "" && name != "" {
			keys = append(keys, apply.Key{Group: gk.Group, Kind: gk.Kind, Namespace: namespace, Name: name})
		}
	}
	return keys
}

// Stamp marks the record of an action with the owner and the inputs of the revision.
type Stamp struct {
	owner   apply.Owner
	Action  string
	Digests Digests
	// Approved is the digest of the approved plan, empty if the action needed no approval.
	Approved string
	// Integers and KeptNumbers are those of Record and Description.
	Integers    bool
	KeptNumbers string
	marks       Marks
	// Redact removes secret values from the annotations.
	Redact func(string) string
}

// Digests identify the inputs of a revision. Each fits into a label.
type Digests struct {
	// Input covers all inputs. Between two revisions with the same Input, no upgrade is
	// needed.
	Input string
	// Chart covers the chart's files.
	Chart string
	// Values covers the values given to the chart.
	Values string
}

// NewStamp returns the Stamp of one action.
func NewStamp(owner apply.Owner, digests Digests, marks Marks) Stamp {
	return Stamp{owner: owner, Action: string(uuid.NewUUID()), Digests: digests, marks: marks}
}

// Mark sets Chartwright's labels on a new revision and removes those that Helm copied
// from an older one.
func (s Stamp) Mark(rls *engine.Release) {
	labels := map[string]string{}
	maps.Copy(labels, rls.Labels)
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
	if !s.Integers {
		labels[api.LabelNumbers] = api.NumbersHelm
	}
	for key, value := range s.marks.Labels() {
		if value != "" {
			labels[key] = value
		}
	}
	rls.Labels = labels
}

// Annotate sets the annotations with the data that the status reports and that does not
// fit into labels.
func (s Stamp) Annotate(secret *corev1.Secret, rls *engine.Release, inventory Inventory) {
	description := Description{Description: api.Truncate(s.Redact(rls.Info.Description), MaxDescription), NoHooks: len(rls.Hooks) == 0, KeptNumbers: s.KeptNumbers}
	description.setChart(rls)
	if !rls.Info.LastDeployed.IsZero() {
		description.Deployed = metav1.NewTime(engine.GoTime(rls.Info.LastDeployed))
	}
	// Encoding a struct of strings and a time never fails.
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

// MaxDescription limits the description in memory and in the status. The record holds
// the full text.
const MaxDescription = 256
