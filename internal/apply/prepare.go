package apply

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/chartwright/chartwright/internal/api"
)

// keepAnnotation is Helm's annotation; the value "keep" protects an object from deletion.
const keepAnnotation = "helm.sh/resource-policy"

// Prepare returns a copy of an object that is ready to be applied: with the marks of its
// owner, and without content that server-side apply does not support. If refer is true,
// it adds an ownerReference, so that the garbage collector deletes the object if the owner
// is deleted without the operator. Objects with the policy "keep", protected objects and
// objects in other namespaces get no ownerReference. Callers do not refer to other guarded
// objects.
func Prepare(object *unstructured.Unstructured, owner Owner, refer bool) (*unstructured.Unstructured, error) {
	if err := CheckNumbers(object); err != nil {
		return nil, err
	}
	object = object.DeepCopy()
	unstructured.RemoveNestedField(object.Object, "status")
	for _, field := range []string{"creationTimestamp", "managedFields", "resourceVersion", "uid"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	if err := foldStringData(object); err != nil {
		return nil, err
	}
	dropAggregatedRules(object)

	mark(object, owner, api.LabelOwnerUID)
	if refer && object.GetNamespace() == owner.Namespace && owner.Namespace != "" && !HasKeepPolicy(object) && !IsProtected(object) {
		object.SetOwnerReferences(append(object.GetOwnerReferences(), owner.Reference()))
	}
	return object, SetDigest(object)
}

// SetDigest sets the digest of a prepared object in its annotation.
func SetDigest(object *unstructured.Unstructured) error {
	if annotations := object.GetAnnotations(); annotations[api.AnnotationApplied] != "" {
		delete(annotations, api.AnnotationApplied)
		if len(annotations) == 0 {
			annotations = nil
		}
		object.SetAnnotations(annotations)
	}
	digest, err := DigestOf(object)
	if err == nil {
		annotate(object, api.AnnotationApplied, digest)
	}
	return err
}

// digestLength is the length of the result of DigestOf.
const digestLength = 32

// DigestOf returns the digest of a prepared object, for AnnotationApplied.
func DigestOf(object *unstructured.Unstructured) (string, error) {
	data, err := json.Marshal(object.Object)
	if err != nil {
		return "", fmt.Errorf("%s: %w", Describe(object), err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:digestLength/2]), nil
}

// PrepareHook returns a copy of a hook that is ready to be created. A hook belongs to an
// action and not to the release, so it gets another label and no ownerReference.
func PrepareHook(object *unstructured.Unstructured, owner Owner) *unstructured.Unstructured {
	object = object.DeepCopy()
	// Client.Create recognizes its object by this annotation.
	unstructured.RemoveNestedField(object.Object, "metadata", "annotations", api.AnnotationApplied)
	mark(object, owner, api.LabelHookOwnerUID)
	return object
}

func mark(object *unstructured.Unstructured, owner Owner, uidLabel string) {
	object.SetLabels(labels.Merge(object.GetLabels(), map[string]string{uidLabel: string(owner.UID), api.LabelOperator: owner.Operator}))
	annotate(object, api.AnnotationOwner, owner.String())
}

func annotate(object *unstructured.Unstructured, key, value string) {
	object.SetAnnotations(labels.Merge(object.GetAnnotations(), map[string]string{key: value}))
}

// HasKeepPolicy reports whether the object must not be deleted with its release. Like Helm,
// it trims the value and ignores its case.
func HasKeepPolicy(object interface{ GetAnnotations() map[string]string }) bool {
	return strings.EqualFold(strings.TrimSpace(object.GetAnnotations()[keepAnnotation]), "keep")
}

// IsProtected reports whether the annotation api.AnnotationProtect protects the object.
func IsProtected(object interface{ GetAnnotations() map[string]string }) bool {
	set, err := strconv.ParseBool(strings.TrimSpace(object.GetAnnotations()[api.AnnotationProtect]))
	return err == nil && set
}

// foldStringData moves the stringData of a Secret to data. The API server never returns
// stringData, so an apply of it could neither detect nor correct a change of data. As when
// the API server creates a Secret, a null becomes an empty string.
func foldStringData(object *unstructured.Unstructured) error {
	if object.GetAPIVersion() != "v1" || object.GetKind() != "Secret" {
		return nil
	}
	given, found := object.Object["stringData"]
	if !found {
		return nil
	}
	text, ok := given.(map[string]any)
	if !ok && given != nil {
		return fmt.Errorf("%s: stringData: got %T, want a map of strings", Describe(object), given)
	}
	data, ok := object.Object["data"].(map[string]any)
	if !ok && object.Object["data"] != nil {
		return fmt.Errorf("%s: data: got %T, want a map of strings", Describe(object), object.Object["data"])
	}
	if data == nil {
		data = map[string]any{}
	}
	for key, value := range text {
		typed, ok := value.(string)
		if !ok && value != nil {
			return fmt.Errorf("%s: stringData[%s]: got %T, want a string", Describe(object), key, value)
		}
		data[key] = base64.StdEncoding.EncodeToString([]byte(typed))
	}
	delete(object.Object, "stringData")
	object.Object["data"] = data
	return nil
}

// dropAggregatedRules removes the rules of an aggregated ClusterRole. A controller sets them,
// and each apply would empty the role.
func dropAggregatedRules(object *unstructured.Unstructured) {
	if object.GroupVersionKind().Group != "rbac.authorization.k8s.io" || object.GetKind() != "ClusterRole" {
		return
	}
	if _, found, _ := unstructured.NestedMap(object.Object, "aggregationRule"); found {
		unstructured.RemoveNestedField(object.Object, "rules")
	}
}

// CheckNumbers returns an error for numbers that exceed the range of their field. The API
// server rejects such numbers when it creates an object, but truncates them in an apply:
// 99999999999 replicas become 1215752191. It checks built-in kinds only; other kinds
// have a schema.
func CheckNumbers(object *unstructured.Unstructured) error {
	if !mayOverflow(object.Object) {
		return nil
	}
	known, ok := typeOf(object.GroupVersionKind())
	if !ok {
		return nil
	}
	if err := errors.Join(checkFields(object.Object, known.T, nil)...); err != nil {
		return fmt.Errorf("%s: %w", Describe(object), err)
	}
	return nil
}

// mayOverflow reports whether a value contains a number that exceeds the range of some field.
func mayOverflow(value any) bool {
	switch typed := value.(type) {
	case map[string]any:
		for _, field := range typed {
			if mayOverflow(field) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(typed, mayOverflow)
	case int64:
		return typed > math.MaxInt32 || typed < math.MinInt32
	case float64:
		return true
	}
	return false
}

func checkFields(value any, of reflect.Type, path *field.Path) []error {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	var found []error
	switch typed := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(typed)) {
			if inner := fieldType(of, name); inner != nil {
				found = append(found, checkFields(typed[name], inner, path.Child(name))...)
			}
		}
	case []any:
		if of.Kind() != reflect.Slice {
			return nil
		}
		for i, item := range typed {
			found = append(found, checkFields(item, of.Elem(), path.Index(i))...)
		}
	case int64, float64:
		if err := checkNumber(value, of); err != nil {
			found = append(found, fmt.Errorf("%s: %w", path, err))
		}
	}
	return found
}

// fieldType returns the type of a field of a struct, or of the values of a map, or nil.
func fieldType(of reflect.Type, name string) reflect.Type {
	switch of.Kind() { //nolint:exhaustive // nothing else has fields
	case reflect.Map:
		return of.Elem()
	case reflect.Struct:
		field, _, err := strategicpatch.PatchMetaFromStruct{T: of}.LookupPatchMetadataForStruct(name)
		if typed, ok := field.(strategicpatch.PatchMetaFromStruct); ok && err == nil {
			return typed.T
		}
	}
	return nil
}

// checkNumber returns an error for a number that a field of the given type cannot hold.
func checkNumber(number any, of reflect.Type) error {
	bits := 64
	switch {
	case of == reflect.TypeFor[intstr.IntOrString](), of.Kind() == reflect.Int32:
		bits = 32
	case of.Kind() != reflect.Int64:
		return nil
	}
	text := fmt.Sprint(number)
	if float, ok := number.(float64); ok {
		text = strconv.FormatFloat(float, 'f', -1, 64)
	}
	if _, err := strconv.ParseInt(text, 10, bits); err != nil {
		limit := int64(math.MaxInt64) >> (64 - bits)
		return fmt.Errorf("number out of range: got %s, want a whole number from %d to %d", text, -limit-1, limit)
	}
	return nil
}
