package apply

import (
	"context"
	"encoding/base64"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/chartwright/chartwright/internal/api"
)

// A chart can render nothing for a field that an injector sets, such as a caBundle. Helm writes
// only what changes between two revisions, so the injected value stays. An apply takes over every
// field that it contains. It therefore omits such a field if another manager has set it since.

// hasNothing reports whether an object contains a field that yields to an injector.
func hasNothing(value any) bool {
	switch v := value.(type) {
	case map[string]any:
		for key, field := range v {
			if isNothing(key, field) || hasNothing(field) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, hasNothing)
	}
	return false
}

const keyCABundle = "caBundle"

// isNothing reports whether a rendered field means that another client sets it: it is null, an
// empty text, or a CA bundle without a certificate. An empty list or map can be meant.
func isNothing(key string, value any) bool {
	text, isText := value.(string)
	if key == keyCABundle {
		if decoded, err := base64.StdEncoding.DecodeString(text); err == nil {
			text = strings.TrimSpace(string(decoded))
		}
	}
	return value == nil || isText && text == ""
}

// isFieldConflict reports whether an apply was refused because other managers own fields that it
// would change.
func isFieldConflict(err error) bool {
	return slices.ContainsFunc(causesOf(err), func(cause metav1.StatusCause) bool { return cause.Type == metav1.CauseTypeFieldManagerConflict })
}

// yield returns the object without the fields that other managers have set since the last apply,
// if the object has nothing for them or the options ignore them.
func (c Client) yield(ctx context.Context, o Object, options Options) (Object, error) {
	live, err := c.Get(ctx, o)
	if err != nil || live == nil {
		return o, err
	}
	own := &fieldpath.Set{}
	if entry := ownEntry(live.GetManagedFields()); entry != nil {
		if own, err = parseFields(entry.FieldsV1.GetRawBytes()); err != nil {
			return o, fmt.Errorf("read the managed fields of %s: %w", Describe(o), err)
		}
	}
	o.Unstructured = o.DeepCopy()
	ignored := options.ignored(o.Unstructured)
	for _, entry := range live.GetManagedFields() {
		if entry.Manager == api.FieldManager || entry.Manager == api.FieldManagerInitial || entry.FieldsV1 == nil {
			continue
		}
		theirs, err := parseFields(entry.FieldsV1.GetRawBytes())
		if err != nil {
			return o, fmt.Errorf("read the managed fields of %s: %w", Describe(o), err)
		}
		// A person who edits an object is no injector, but a Job may inject certificates by kubectl.
		person := strings.HasPrefix(entry.Manager, "kubectl")
		theirs.Difference(own).Leaves().Iterate(func(path fieldpath.Path) {
			skipped := slices.ContainsFunc(ignored, func(at place) bool { return at.holds(o.Object, path) })
			for length := range path {
				at, ok := placeOf(o.Object, path[:length+1])
				if ok && isNothing(at.key, at.in[at.key]) && (!person || at.key == keyCABundle) {
					if options.Warn != nil {
						options.Warn(fmt.Sprintf("%s: %s is left to %s, because the chart has nothing for it", Describe(o), strings.TrimPrefix(path.String(), "."), entry.Manager))
					}
					delete(at.in, at.key)
				} else if ok && skipped && length == len(path)-1 {
					delete(at.in, at.key)
				}
			}
		})
	}
	return o, nil
}

// place is a field of an object.
type place struct {
	in  map[string]any
	key string
}

// holds reports whether a path leads to the place or to a field below it.
func (p place) holds(object map[string]any, path fieldpath.Path) bool {
	for length := range path {
		at, ok := placeOf(object, path[:length+1])
		if ok && at.key == p.key && reflect.ValueOf(at.in).Pointer() == reflect.ValueOf(p.in).Pointer() {
			return true
		}
	}
	return false
}

// placeOf returns the field of the object at a path of managed fields, and false if the object
// does not have it.
func placeOf(object map[string]any, path fieldpath.Path) (found place, ok bool) {
	var at any = object
	for _, element := range path {
		switch {
		case element.FieldName != nil:
			in, isMap := at.(map[string]any)
			value, has := in[*element.FieldName]
			if !isMap || !has {
				return place{}, false
			}
			found, at = place{in, *element.FieldName}, value
		case element.Key != nil:
			list, _ := at.([]any)
			i := slices.IndexFunc(list, func(item any) bool {
				fields, isMap := item.(map[string]any)
				for _, key := range *element.Key {
					isMap = isMap && reflect.DeepEqual(fields[key.Name], key.Value.Unstructured())
				}
				return isMap
			})
			if i < 0 {
				return place{}, false
			}
			at = list[i]
		default:
			return place{}, false
		}
	}
	return found, path[len(path)-1].FieldName != nil
}

// ignored returns the places of Options.Ignored that the object has.
func (options Options) ignored(object *unstructured.Unstructured) (places []place) {
	for _, segments := range options.Ignored {
		var at any = object.Object
		var found place
		for _, segment := range segments {
			switch container := at.(type) {
			case map[string]any:
				found, at = place{container, segment}, container[segment]
			case []any:
				found, at = place{}, itemAt(container, segment)
			default:
				found, at = place{}, nil
			}
		}
		if at != nil && found.in != nil {
			places = append(places, found)
		}
	}
	return places
}

// itemAt returns the item of a list at an index, or with a field as in name=web; nil if there is
// none.
func itemAt(list []any, segment string) any {
	if i, err := strconv.Atoi(segment); err == nil && i >= 0 && i < len(list) {
		return list[i]
	}
	key, value, _ := strings.Cut(segment, "=")
	for _, item := range list {
		if fields, ok := item.(map[string]any); ok && fields[key] != nil && fmt.Sprint(fields[key]) == value {
			return item
		}
	}
	return nil
}
