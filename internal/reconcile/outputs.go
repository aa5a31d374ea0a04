package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/chartwright/chartwright/internal/api"
	"github.com/chartwright/chartwright/internal/apply"
	"github.com/chartwright/chartwright/internal/catalog/kindstatus"
	"github.com/chartwright/chartwright/internal/chart/values"
	"github.com/chartwright/chartwright/internal/inputs/valuesfrom"
)

// Outputs reads the objects that outputs are computed from, and publishes sensitive
// outputs.
type Outputs interface {
	// Read returns an object of a release from the API server.
	Read(ctx context.Context, object apply.Key) (*unstructured.Unstructured, error)
	// Publish creates or updates a Secret for a custom resource, and returns the Secret in the
	// cluster. Of the keys that are only in the cluster, those to keep stay. It returns an
	// error that wraps apply.ErrForeign if the Secret in the cluster is not that of the
	// custom resource.
	Publish(ctx context.Context, owner apply.Owner, secret *corev1.Secret, keep []string) (*corev1.Secret, error)
}

// published is what is remembered of the outputs of a custom resource.
type published struct {
	// inputs is the digest of what the outputs were computed from.
	inputs            string
	public, sensitive kindstatus.Result
	// content is the digest of the Secret, and version its resourceVersion.
	content, version string
}

// outputsSecret returns the name of the Secret with the sensitive outputs of a custom
// resource.
func outputsSecret(kind, name string) string { return strings.ToLower(kind) + "-" + name + "-outputs" }

// computeOutputs computes the outputs, and publishes the sensitive ones before the status
// reports that the custom resource is ready. It makes no request if nothing has changed.
// While the release is being changed, the outputs stay.
func (r *Reconciler) computeOutputs(ctx context.Context, v *snapshot) error {
	o := v.Observation
	switch {
	case r.Kind.Chart == nil || r.DeletionOnly || v.Outputs.Refused:
		return nil
	case !r.Kind.Outputs.Exist():
		v.Outputs.Known = true
		return nil
	case o.Deleting || o.Running != nil || o.Newest == nil || !o.Newest.Owned || o.Newest.Status != api.StatusDeployed:
		return nil
	}
	r.follow(v)
	v.Outputs.Failures = nil
	result, err := r.evaluateOutputs(ctx, v)
	evaluated := err == nil
	if evaluated && len(r.Kind.Outputs.Sensitive) > 0 {
		err = r.publishOutputs(ctx, v, result.sensitive)
	}
	for _, failure := range slices.Concat(result.public.Failures, result.sensitive.Failures) {
		v.Outputs.Failures = append(v.Outputs.Failures, kindstatus.Error{Field: "outputs." + failure.Field, Message: failure.Message})
	}
	if lasting(err) {
		v.Outputs.Failures = append(v.Outputs.Failures, kindstatus.Error{Field: "outputs", Message: r.advise(v, err).Error()})
		r.Wake(v.key, forbiddenRetry)
		err = nil
	}
	if err != nil {
		return fmt.Errorf("outputs: %w", err)
	}
	v.Outputs.Known, v.Outputs.Values = evaluated, result.public.Values
	v.Outputs.Unknown = result.public.Unknown(r.Kind.Outputs.Public)
	return nil
}

// lasting reports whether an error is reported in the status, because it does not end by
// itself.
func lasting(err error) bool {
	return errors.Is(err, apply.ErrForeign) || apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err)
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

// evaluateOutputs returns the results of the outputs. Without a change, these are the
// remembered ones.
func (r *Reconciler) evaluateOutputs(ctx context.Context, v *snapshot) (published, error) {
	uid, in := v.CR.GetUID(), r.expressionInput(ctx, v)
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
	text, err := json.Marshal(used)
	if err != nil {
		return published{}, fmt.Errorf("internal error: encode what outputs are computed from: %w", err)
	}
	inputs := values.DigestOf(string(text))
	var known published
	r.memory.ifKnown(uid, func(m *remembered) { known = m.published })
	if known.inputs == inputs {
		return known, nil
	}
	secrets := slices.Clone(v.Secrets)
	if in.Objects, err = r.readObjects(ctx, owned, &secrets); err != nil {
		return published{}, err
	}
	known.public = r.Kind.Outputs.Public.Evaluate(in)
	in.Sensitive, in.Redact = true, func(text string) string { return explainSensitive(secrets.Redact(text)) }
	known.sensitive = r.Kind.Outputs.Sensitive.Evaluate(in)
	known.inputs = inputs
	r.memory.ifKnown(uid, func(m *remembered) {
		m.published.inputs, m.published.public, m.published.sensitive = inputs, known.public, known.sensitive
	})
	return known, nil
}

// explainSensitive returns the part of an error that contains no values.
func explainSensitive(text string) string {
	if strings.HasPrefix(text, "no such key") {
		return text
	}
	return "the evaluation failed, and the error is not shown because the output is sensitive"
}

// readByOutputs returns the objects of the release that outputs may read, by the names of
// their kinds in the expressions.
func (r *Reconciler) readByOutputs(v *snapshot) map[string][]apply.State {
	names := r.Kind.Outputs.Objects
	found := make(map[string][]apply.State, len(names))
	if len(names) == 0 {
		return found
	}
	owned := r.Inventory.OwnedBy(v.CR.GetUID())
	for name, gk := range names {
		found[name] = slices.DeleteFunc(slices.Clone(owned), func(s apply.State) bool {
			return s.Kind != gk.Kind || gk.Group != "" && s.Group != gk.Group || s.Deleting || s.Namespace != "" && s.Namespace != v.Release.Namespace
		})
		slices.SortFunc(found[name], func(a, b apply.State) int { return strings.Compare(a.Name, b.Name) })
	}
	return found
}

// readObjects reads objects from the API server, and adds the content of Secrets to the
// secrets. In an expression, the data of a Secret is text.
func (r *Reconciler) readObjects(ctx context.Context, owned map[string][]apply.State, secrets *valuesfrom.Secrets) (map[string]any, error) {
	ctx, cancel := context.WithTimeout(ctx, sourceTimeout)
	defer cancel()
	objects := make(map[string]any, len(owned))
	for name, states := range owned {
		byName := make(map[string]any, len(states))
		for _, s := range states {
			object, err := r.Outputs.Read(ctx, s.Key)
			switch {
			case apierrors.IsNotFound(err):
				// The watch reports the deletion next.
				continue
			case err != nil:
				return nil, fmt.Errorf("read %s: %w", s.Key, err)
			}
			if s.GroupKind() == valuesfrom.SecretKind.GroupKind() {
				data, err := valuesfrom.DecodeSecret(object.Object)
				if err != nil {
					return nil, fmt.Errorf("read %s: %w", s.Key, err)
				}
				object.Object["data"] = data
				*secrets = append(*secrets, valuesfrom.SecretsIn(data)...)
			}
			byName[s.Name] = object.Object
		}
		objects[name] = byName
	}
	return objects, nil
}

// publishOutputs writes the Secret with the sensitive outputs, unless it is as it was
// written last. An output that is not known now keeps its value.
func (r *Reconciler) publishOutputs(ctx context.Context, v *snapshot, result kindstatus.Result) error {
	uid := v.CR.GetUID()
	owner := apply.Owner{GVK: r.Kind.GVK(), Namespace: v.CR.GetNamespace(), Name: v.CR.GetName(), UID: uid, Operator: r.Operator}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: outputsSecret(r.Kind.Kind, v.CR.GetName()), Namespace: v.CR.GetNamespace()},
		Type:       corev1.SecretTypeOpaque,
		Data:       map[string][]byte{},
	}
	if secret.Namespace == "" {
		secret.Namespace = v.Release.Namespace
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
	var known published
	r.memory.ifKnown(uid, func(m *remembered) { known = m.published })
	if live, exists := r.Inventory.Get(key); exists && known.content == digest && !api.IsNewer(live.ResourceVersion, known.version) {
		v.Outputs.Secret = secret.Name
		return nil
	}
	written, err := r.Outputs.Publish(ctx, owner, secret, keep)
	if err != nil {
		return err
	}
	v.Outputs.Secret = secret.Name
	r.Inventory.Put(apply.StateOf(valuesfrom.SecretKind.GroupKind(), written))
	r.memory.ifKnown(uid, func(m *remembered) { m.published.content, m.published.version = digest, written.ResourceVersion })
	return nil
}
