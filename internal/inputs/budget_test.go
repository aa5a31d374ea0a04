package inputs

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestCharge_RefusedObjectHasNoCharge(t *testing.T) {
	item := func(namespace, name string) Item {
		return Item{Of: "pods", NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}}
	}
	const fits, tooLarge, namespaceFull, allFull = "fits", "too large", "namespace full", "all full"
	b := NewBudget(Limits{Object: 10, Namespace: 20, Total: 30})
	for _, test := range []struct {
		name  string
		item  Item
		bytes int
		want  string
		// total is the number of bytes charged afterwards.
		total int
	}{
		{"fits", item("one", "a"), 10, fits, 10},
		{"exceeds the limit of an object", item("one", "b"), 11, tooLarge, 10},
		{"fits exactly", item("one", "b"), 10, fits, 20},
		{"exceeds the limit of the namespace", item("one", "c"), 1, namespaceFull, 20},
		{"becomes smaller", item("one", "a"), 4, fits, 14},
		{"becomes too large", item("one", "b"), 11, tooLarge, 4},
		{"fits into another namespace", item("two", "a"), 10, fits, 14},
		{"fits into the total", item("two", "b"), 10, fits, 24},
		{"exceeds the total", item("three", "a"), 7, allFull, 24},
		{"fits exactly into the total", item("three", "a"), 6, fits, 30},
		{"becomes empty", item("three", "a"), 0, fits, 24},
	} {
		refused := b.Charge(test.item, "u", test.bytes)
		got := fits
		switch {
		case refused.Permanent:
			got = tooLarge
		case refused.Total:
			got = allFull
		case refused.Message != "":
			got = namespaceFull
		}
		if got != test.want || b.total != test.total {
			t.Errorf("%s: %s, %d bytes are charged, want %s, %d", test.name, got, b.total, test.want, test.total)
		}
		if _, charged := b.charges[test.item]; charged != (test.want == fits && test.bytes > 0) {
			t.Errorf("%s: charged %v", test.name, charged)
		}
	}
}
