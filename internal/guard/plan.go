package guard

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/chartwright/chartwright/internal/apply"
)

// Verb is what an operation does to an object.
type Verb string

// The verbs.
const (
	Delete    Verb = "delete"
	Recreate  Verb = "recreate"
	ScaleDown Verb = "scale down"
	Replace   Verb = "replace"
)

// Operation is a guarded operation of an action.
type Operation struct {
	Verb Verb
	apply.Key
	// UID is that of the live object, empty if the object cannot be read.
	UID types.UID
	// Why is why the operation needs an approval.
	Why string
}

// String describes the operation: "delete PersistentVolumeClaim default/data (why)".
func (o Operation) String() string { return fmt.Sprintf("%s %s (%s)", o.Verb, o.Key, o.Why) }

// Plan is an action that needs an approval.
type Plan struct {
	// Action is "upgrade", or "rollback to revision 2".
	Action string
	// DeletesAll reports that the action deletes all objects of the release, and needs an
	// approval also without guarded operations. Action then describes this.
	DeletesAll bool
	// Chart and Values are the digests of the inputs.
	Chart, Values string
	// Base is the deployed revision that the action replaces.
	Base int
	// Operations are the guarded operations. There may be none if every action needs an
	// approval.
	Operations []Operation
}

// digestLength is the length of Plan.Digest in hexadecimal digits.
const digestLength = 16

// Digest identifies what is approved: the action, its inputs, the base revision and the
// guarded operations. It does not depend on rendered values and resourceVersions, so that
// it is the same for each render of a chart with random values.
func (p Plan) Digest() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%q %q %q %d\n", p.Action, p.Chart, p.Values, p.Base)
	for _, o := range p.sorted() {
		fmt.Fprintf(&text, "%q %q %q %q %q %q\n", o.Verb, o.Group, o.Kind, o.Namespace, o.Name, o.UID)
	}
	sum := sha256.Sum256([]byte(text.String()))
	return hex.EncodeToString(sum[:])[:digestLength]
}

func (p Plan) sorted() []Operation {
	return slices.SortedFunc(slices.Values(p.Operations), func(a, b Operation) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Group, b.Group), cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.Name, b.Name), cmp.Compare(a.Verb, b.Verb))
	})
}

// named is the number of operations that a summary names.
const named = 10

// Summary describes the plan: the action and its guarded operations.
func (p Plan) Summary() string {
	switch {
	case len(p.Operations) > 0:
	case p.DeletesAll:
		return p.Action
	default:
		return p.Action + " without operations that can lose data"
	}
	operations := p.sorted()
	more := ""
	if len(operations) > named {
		operations, more = operations[:named], fmt.Sprintf(", and %d more", len(operations)-named)
	}
	texts := make([]string, len(operations))
	for i, o := range operations {
		texts[i] = o.String()
	}
	if p.DeletesAll {
		return p.Action + ": " + strings.Join(texts, ", ") + more
	}
	return p.Action + " that would " + strings.Join(texts, ", ") + more
}
