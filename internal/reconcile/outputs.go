package reconcile

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/catalog/kindstatus"
	"github.com/chartwright/chartwright/internal/chart/values"
	"github.com/chartwright/chartwright/internal/inputs/valuesfrom"
	"github.com/chartwright/chartwright/internal/plan"
	"github.com/chartwright/chartwright/internal/reconcile/status"
)

// Outputs reads the objects that outputs are computed from, and publishes sensitive
// outputs.
type Outputs interface {
	// Read returns an object of a release from the API server without its managedFields. It
	// subtracts the object from what may still be read, and returns an error if the object is
	// larger.
	Read(ctx context.Context, object apply.Key, left *ReadLimit) (*unstructured.Unstructured, error)
	// Publish creates or updates a Secret for a custom resource, and returns the Secret in the
	// cluster. Of the keys that are only in the cluster, those to keep stay. It returns an
	// error that wraps apply.ErrForeign if the Secret in the cluster is not that of the
	// custom resource.
	Publish(ctx context.Context, owner apply.Owner, secret *corev1.Secret, keep []string) (*corev1.Secret, error)
	// Withdraw deletes a Secret that Publish created for a custom resource. Other Secrets stay.
	Withdraw(ctx context.Context, owner apply.Owner, secret types.NamespacedName) error
}

// published is what is remembered of the outputs of a custom resource.
type published struct {
	// inputs is the digest of what the outputs were computed from.
	inputs            string
	public, sensitive kindstatus.Result
	// content is the digest of the Secret, and version its resourceVersion.
	content, version string
	// unread reports that an object could not be read, and unpublished is why the Secret could
	// not be written. attempts counts the attempts in a row that failed in one of these ways,
	// and the next attempt is due at next.
	unread      bool
	unpublished error
	attempts    int
	next        time.Time
	// pause is the time before which no objects are read, because the last evaluation was slow.
	pause time.Time
}

// retryLater sets the time of the next attempt after one that has failed.
func (p *published) retryLater(now time.Time) {
	p.attempts++
	if p.next = now.Add(plan.Backoff(p.attempts)); p.next.Before(p.pause) {
		p.next = p.pause
	}
}

// outputsSecret returns the name of the Secret with the sensitive outputs of a custom
// resource.
func outputsSecret(kind, name string) string { return strings.ToLower(kind) + "-" + name + "-outputs" }

// computeOutputs computes the outputs, and publishes the sensitive ones before the status
// reports that the custom resource is ready. It makes no request if nothing has changed.
// While the release is being changed, the outputs stay.
//
// Whatever fails is reported and retried with backoff, and the outputs concerned stay. It never
// prevents the report of the rest of the status.
func (r *Reconciler) computeOutputs(ctx context.Context, v *snapshot) {
	o, uid := v.Observation, v.CR.GetUID()
	reported := status.Read(v.CR).OutputsSecret
	switch {
	case r.Kind.Chart == nil || r.DeletionOnly || v.Outputs.Refused:
		return
	case !r.Kind.Outputs.Exist() && reported == "":
		v.Outputs.Known = true
		return
	case o.Deleting || o.Running != nil || o.Newest == nil || !o.Newest.Owned || o.Newest.Status != api.StatusDeployed:
		return
	}
	r.follow(v)
	known := r.memory.of(uid).published
	evaluated := r.evaluateOutputs(ctx, v, &known)
	failed := evaluated && known.unread
	if evaluated || known.unpublished == nil {
		known.unpublished = r.updateOutputsSecret(ctx, v, &known, reported)
		failed = failed || known.unpublished != nil
	}
	switch {
	case failed:
		known.retryLater(o.Now)
	case evaluated:
		known.attempts = 0
	}
	r.memory.ifKnown(uid, func(m *remembered) { m.published = known })
	v.Outputs.Known, v.Outputs.Values = true, known.public.Values
	v.Outputs.Unknown = known.public.Unknown(r.Kind.Outputs.Public)
	v.Outputs.Failures = r.outputFailures(v, known)
	if known.unpublished != nil && !errors.Is(known.unpublished, apply.ErrForeign) {
		v.Outputs.Secret = reported
	}
	if known.attempts > 0 {
		r.Wake(v.key, known.next.Sub(o.Now))
	}
}

// outputFailures returns why outputs are not known or not published, and when the next attempt
// is due.
func (r *Reconciler) outputFailures(v *snapshot, known published) (failures []kindstatus.Error) {
	for _, failure := range slices.Concat(known.public.Failures, known.sensitive.Failures) {
		failures = append(failures, kindstatus.Error{Field: "outputs." + failure.Field, Message: failure.Message})
	}
	if known.unpublished != nil {
		failures = append(failures, kindstatus.Error{Field: "outputs", Message: apply.Explain(r.advise(v, known.unpublished))})
	}
	if known.attempts > 0 {
		failures = append(failures, kindstatus.Error{Field: "outputs", Message: "the next attempt is at " + known.next.UTC().Format(time.RFC3339)})
	}
	return failures
}

// follow requests a reconciliation after each change of an object that outputs are
// computed from, and of the Secret with the outputs.
func (r *Reconciler) follow(v *snapshot) {
	uid := v.CR.GetUID()
	kinds := slices.Collect(maps.Values(r.Kind.Outputs.Objects))
	if len(r.Kind.Outputs.Sensitive) > 0 {
		kinds = append(kinds, valuesfrom.SecretKind.GroupKind())
		if r.Inventory.Watches != nil {
			r.Inventory.WatchMore(uid, []schema.GroupVersionKind{valuesfrom.SecretKind})
		}
	}
	slices.SortFunc(kinds, func(a, b schema.GroupKind) int { return strings.Compare(a.String(), b.String()) })
	r.Inventory.Follow(uid, slices.Compact(kinds))
}

// evaluateOutputs computes the results of the outputs, and returns whether it did. If nothing
// has changed since they were computed, it does so only to retry.
func (r *Reconciler) evaluateOutputs(ctx context.Context, v *snapshot, known *published) bool {
	in := r.expressionInput(ctx, v)
	if v.Observation.Newest.Digest != v.Observation.Desired {
		// The values are not those of the release.
		in.Values = nil
	}
	used := map[string]any{"release": in.Release, "resources": in.Resources, "values": ""}
	if in.Values != nil {
		used["values"] = v.digests.Input
	}
	if r.Kind.Outputs.Public.UseObserved() || r.Kind.Outputs.Sensitive.UseObserved() {
		used["observed"], used["unobserved"] = in.Observed, in.Unobserved
	}
	owned := r.readByOutputs(v)
	for name, states := range owned {
		for _, s := range states {
			used[name+"/"+s.Name] = s.ResourceVersion
		}
	}
	// What was decoded from JSON can be encoded.
	text, _ := json.Marshal(used)
	switch inputs := values.DigestOf(string(text)); {
	case known.inputs != inputs:
		known.inputs, known.attempts = inputs, 0
	case known.attempts == 0 || v.Observation.Now.Before(known.next):
		return false
	}
	began := r.Now()
	ctx, cancel := context.WithTimeout(ctx, readsTimeout)
	defer cancel()
	secrets := slices.Clone(v.Secrets)
	known.unread = false
	in.Objects = r.objectsForOutputs(ctx, v, owned, known, &secrets)
	known.public = r.Kind.Outputs.Public.Evaluate(in)
	in.Sensitive, in.Redact = true, func(text string) string { return explainSensitive(secrets.Redact(text)) }
	known.sensitive = r.Kind.Outputs.Sensitive.Evaluate(in)
	if took := r.Now().Sub(began); took > slowEvaluation {
		known.pause = v.Observation.Now.Add(pauseFactor * took)
	}
	return true
}

// explainSensitive returns the part of an error that contains no values.
func explainSensitive(text string) string {
	if strings.HasPrefix(text, "no such key") {
		return text
	}
	return "the evaluation failed, and the error is not shown because the output is sensitive"
}

// updateOutputsSecret publishes the sensitive outputs. If the kind no longer has such outputs, it
// deletes the Secret that the status reports.
func (r *Reconciler) updateOutputsSecret(ctx context.Context, v *snapshot, known *published, reported string) error {
	ctx, cancel := context.WithTimeout(ctx, readsTimeout)
	defer cancel()
	switch {
	case len(r.Kind.Outputs.Sensitive) > 0:
		return r.publishOutputs(ctx, v, known)
	case reported != "":
		return r.Outputs.Withdraw(ctx, r.owner(v), types.NamespacedName{Namespace: outputsNamespace(v), Name: reported})
	}
	return nil
}

// outputsNamespace returns the namespace of the Secret with the sensitive outputs.
func outputsNamespace(v *snapshot) string { return cmp.Or(v.CR.GetNamespace(), v.Release.Namespace) }

// publishOutputs writes the Secret with the sensitive outputs, unless it is as it was
// written last. An output that is not known now keeps its value.
func (r *Reconciler) publishOutputs(ctx context.Context, v *snapshot, known *published) error {
	result := known.sensitive
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: outputsSecret(r.Kind.Kind, v.CR.GetName()), Namespace: outputsNamespace(v)},
		Type:       corev1.SecretTypeOpaque,
		Data:       map[string][]byte{},
	}
	keep := result.Unknown(r.Kind.Outputs.Sensitive)
	for name, value := range result.Values {
		text, isText := value.(string)
		if !isText && value != nil {
			encoded, err := json.Marshal(value)
			if err != nil {
				return fmt.Errorf("internal error: encode the output %s: %w", name, err)
			}
			text = string(encoded)
		}
		if value != nil {
			secret.Data[name] = []byte(text)
		}
	}
	content, err := json.Marshal(secret.Data)
	if err != nil {
		return fmt.Errorf("internal error: encode the outputs: %w", err)
	}
	digest := values.DigestOf(secret.Namespace, secret.Name, string(content), strings.Join(keep, ","))
	key := apply.Key{Kind: valuesfrom.SecretKind.Kind, Namespace: secret.Namespace, Name: secret.Name}
	if live, exists := r.Inventory.Get(key); exists && known.content == digest && !api.IsNewer(live.ResourceVersion, known.version) {
		v.Outputs.Secret = secret.Name
		return nil
	}
	written, err := r.Outputs.Publish(ctx, r.owner(v), secret, keep)
	if err != nil {
		return err
	}
	v.Outputs.Secret = secret.Name
	r.Inventory.Put(apply.StateOf(valuesfrom.SecretKind.GroupKind(), written))
	known.content, known.version = digest, written.ResourceVersion
	return nil
}
