package inputs

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// Limits limit the bytes that a store keeps of objects that tenants can write.
type Limits struct {
	// Object limits one object, Namespace the objects of a namespace, and Total all objects.
	Object, Namespace, Total int
}

// FieldLimits are the limits of a store that keeps the fields of objects that expressions
// read. The limit of all objects is a tenth of the memory limit in config/manager, and a
// garbage-collected heap needs up to twice the size of its objects. The limit of a namespace
// leaves room for 20 namespaces that exceed it.
var FieldLimits = Limits{Object: 64 << 10, Namespace: 2 << 20, Total: 48 << 20}

// WholeLimits are the limits of a store that keeps whole objects, of all objects of a kind.
// Decoded, a Deployment takes about 25 KiB.
var WholeLimits = Limits{Object: 1 << 20, Namespace: 16 << 20, Total: 96 << 20}

// SecretLimits are the limits of Secrets in valuesFrom, and CachedLimits those of other objects
// there, which can be read again. A Secret of 1 MiB with a few long texts takes 2 MiB, decoded.
// A namespace has room for two versions of it.
var (
	SecretLimits = Limits{Object: 3 << 20, Namespace: 6 << 20, Total: 42 << 20}
	CachedLimits = Limits{Object: 3 << 20, Namespace: 6 << 20, Total: 12 << 20}
)

// Item is the name of an object of a watch. Of identifies the watch.
type Item struct {
	Of any
	types.NamespacedName
}

// Budget holds how many bytes each object takes. The transform of an informer charges an
// object before the informer keeps it, so that refused content is never kept. Its methods
// may be called concurrently.
type Budget struct {
	limits Limits

	mu          sync.Mutex
	charges     map[Item]charge
	byNamespace map[string]int
	total       int
}

// charge belongs to one object, because an object of the same name can be charged before
// the deletion of the previous one is handled.
type charge struct {
	uid   types.UID
	bytes int
}

// NewBudget returns an empty Budget.
func NewBudget(limits Limits) *Budget {
	return &Budget{limits: limits, charges: map[Item]charge{}, byNamespace: map[string]int{}}
}

// Refusal is why an object exceeds a Budget. The zero Refusal means that it does not.
type Refusal struct {
	Message string
	// Permanent: the object itself is too large.
	Permanent bool
	// Total: the limit of all namespaces is exceeded.
	Total bool
}

// Charge charges an object, in place of what was charged for its name before. A refused
// object has no charge.
func (b *Budget) Charge(item Item, uid types.UID, bytes int) Refusal {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.set(item, charge{})
	refused := b.refusal(item.Namespace, bytes)
	if refused == (Refusal{}) && bytes > 0 {
		b.set(item, charge{uid, bytes})
	}
	return refused
}

// Fits reports whether a namespace has room for an object that has no charge.
func (b *Budget) Fits(namespace string, bytes int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.refusal(namespace, bytes) == (Refusal{})
}

// Set charges an object that a store keeps, even if that exceeds a limit. After the store has
// handled all events, the charges are therefore exactly those of the objects it keeps.
func (b *Budget) Set(item Item, uid types.UID, bytes int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.set(item, charge{uid, bytes})
}

// Release removes the charge of an object.
func (b *Budget) Release(item Item, uid types.UID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.charges[item].uid == uid {
		b.set(item, charge{})
	}
}

// ReleaseAll removes the charges of a watch that has ended.
func (b *Budget) ReleaseAll(of any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for item := range b.charges {
		if item.Of == of {
			b.set(item, charge{})
		}
	}
}

// set and refusal require the lock.

func (b *Budget) set(item Item, to charge) {
	more := to.bytes - b.charges[item].bytes
	b.total += more
	if b.byNamespace[item.Namespace] += more; b.byNamespace[item.Namespace] == 0 {
		delete(b.byNamespace, item.Namespace)
	}
	if b.charges[item] = to; to == (charge{}) {
		delete(b.charges, item)
	}
}

func (b *Budget) refusal(namespace string, bytes int) Refusal {
	switch {
	case bytes > b.limits.Object:
		return Refusal{Permanent: true, Message: fmt.Sprintf("takes more than %d KiB of the operator's memory: make it smaller", b.limits.Object>>10)}
	case b.byNamespace[namespace]+bytes > b.limits.Namespace:
		return Refusal{Message: fmt.Sprintf("namespace %q exceeds the limit of %d KiB of such objects in the operator's memory: "+
			"delete objects or make them smaller", namespace, b.limits.Namespace>>10)}
	case b.total+bytes > b.limits.Total:
		return Refusal{Total: true, Message: fmt.Sprintf("all namespaces together exceed the limit of %d KiB of such objects in the operator's memory: "+
			"delete objects or make them smaller, in any namespace", b.limits.Total>>10)}
	default:
		return Refusal{}
	}
}

// Weigh returns about how much memory the content of an object takes. It stops above a
// limit, because the content can have any size.
func Weigh(value any, limit int) int {
	weight := 8
	switch v := value.(type) {
	case string:
		weight = 16 + len(v)
	case map[string]any:
		// A map has room for eight entries, and doubles when it is full.
		weight = 48
		if len(v) > 0 {
			weight += max(8, 2*len(v)) * 34
		}
		for key, item := range v {
			if weight > limit {
				break
			}
			weight += len(key) + Weigh(item, limit-weight)
		}
	case []any:
		weight = 24 + 32*len(v)
		for _, item := range v {
			if weight > limit {
				break
			}
			weight += Weigh(item, limit-weight)
		}
	}
	return weight
}

// Charged returns the bytes that are charged for the objects of a namespace.
func (b *Budget) Charged(namespace string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.byNamespace[namespace]
}
